#include "bindings/cli/event_text.hpp"

#include <fmt/format.h>

#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"

namespace rille::cli {

namespace {

std::string event_price(const Value& e) {
  if (e["price_per_hour"].is_null()) return "a price that is not known";
  return format_money(static_cast<Micros>(e.number("price_per_hour") * 1e6 + 0.5), e.text("currency", "USD")) +
         " per hour";
}

// Events of leases and their machines.
std::string lease_event_text(const Value& e, const std::string& what) {
  const std::string name = e.text("name");
  if (const bool volume = !e["volume"].is_null(); volume && (what == "live" || what == "released"))
    return what == "live" ? fmt::format("made the volume {} at {}", name, event_price(e))
                          : fmt::format("deleted the volume {}", name);
  if (what == "live") return fmt::format("rented {} from {} at {}", name, e.text("provider"), event_price(e));
  if (what == "adopted")
    return fmt::format("uses {} ({}) of run {}, at {}", name, e.text("provider"), e.text("run"), event_price(e));
  if (what == "refused")
    return fmt::format("{}: {} does not give {}: {}", name, e.text("provider"), e.text("offer"), e.text("message"));
  if (what == "starting")
    return fmt::format("{}: waiting for the machine to {}, {}", name, e.text("state") == "pending" ? "start" : "answer",
                       format_duration_ms(e.integer("waited_ms") / 1000 * 1000));
  if (what == "preempting")
    return fmt::format("the machine of {} will be taken away at {}", name,
                       format_utc(static_cast<std::int64_t>(e.number("deadline") * 1e6)));
  if (what == "replacing") return fmt::format("{} goes to another machine", name);
  if (what == "resizing") return fmt::format("{} stops, to become {}", name, e.text("becomes"));
  if (what == "resized") return fmt::format("{} is {} now, at {}", name, e.text("type"), event_price(e));
  if (what == "expired") return fmt::format("{}: it is released", e.text("message"));
  if (what == "released") return fmt::format("released {}", name);
  if (what == "stray")
    return fmt::format("ended {} of {}, which had come to light late: it bears the tag of {}", e.text("machine"),
                       e.text("provider"), name);
  return "";
}

}  // namespace

std::string event_text(const Value& e) {
  const std::string what = e.text("event");
  if (what == "staged")
    return fmt::format("staged {}: {} in {} files", e.text("to"), format_size_bytes(e.integer("bytes")),
                       e.integer("files"));
  if (what == "checkpoint") return fmt::format("checkpoint at step {}", e.integer("step"));
  if (what == "retry")
    return fmt::format("step {} failed, attempt {} in {}: {}", e.text("step"), e.integer("attempt"),
                       format_duration_ms(e.integer("delay_ms")), e.text("error"));
  if (what == "call_restarted")
    return fmt::format("call {} {}: {}", e.text("call"),
                       e.boolean("from_checkpoint") ? "goes on from its last checkpoint" : "starts again",
                       e.text("why"));
  if (what == "reconnect") return fmt::format("call {}: connecting again ({})", e.text("call"), e.text("why"));
  if (what == "fiber_failed") return fmt::format("a background fiber failed: {}", e.text("message"));
  if (what == "warning")
    return fmt::format("warning: {}: {}", e.text("what"), e.text("message", e["error"].text("message")));
  return lease_event_text(e, what);
}

}  // namespace rille::cli
