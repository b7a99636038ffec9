// `rille plan FILE`: shows the machines that a script would rent, with price and duration, without renting. Rehearses
// the script once without failures, then queries the configured providers' offers for each rent.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "bindings/cli/command.hpp"
#include "bindings/cli/rehearsal.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/provider/catalogue/workload.hpp"

namespace rille::cli {

namespace {

struct Line {
  std::string name, provider, offer, region, note;
  Micros price = 0, reserved = 0, expected = 0;
  std::int64_t ttl_ms = 0, used_ms = 0;
  std::optional<Error> refused;  // why the rent would fail: this build cannot use the GPU
};

// The offer's price in dollars per hour; below 0: unknown.
double offer_dollars(const Value& offer) {
  return offer.number(offer["currency"].is_null() ? "price_per_hour" : "dollars_per_hour", -1);
}

// One line of the plan: the cheapest offer of the configured providers or, if they have none, the simulated cloud's
// offer.
Line plan_line(App& app, const Rented& r) {
  const lease::Lease& l = r.lease;
  Line line;
  line.name = l.name;
  line.ttl_ms = (l.expires_us - l.created_us) / 1000;
  line.used_ms = l.live_us ? ((l.released_us ? l.released_us : l.expires_us) - l.live_us) / 1000 : 0;
  line.provider = "sim";
  line.offer = l.request.offer.id;
  line.region = l.request.offer.region;
  line.price = l.price_micros_per_hour;
  Value options = r.options;
  // without a known workload, rank the offers by price
  if (!provider::Workload::resolve(app.home, options)) provider::Workload::leave_out(options);
  const Value wanted = options;
  auto offers = run_blocking(*app.loop, app.engine->leases().queries().offers(std::move(options), {}));
  const Value* best = nullptr;
  if (offers)
    for (const Value& o : *offers->as_array())
      if (!best && offer_dollars(o) >= 0) best = &o;
  if (best) {
    line.provider = best->text("provider");
    line.offer = best->text("id");
    line.region = best->text("region");
    line.price = micros_from_dollars(offer_dollars(*best)).value();
    if (const auto offer = provider::Offer::from_value(*best))
      line.refused = app.engine->leases().queries().gpu_unusable(wanted, *offer);
  } else {
    line.note = "no configured provider has it: the price is the simulated cloud's";
  }
  line.reserved = cost_micros(line.price, line.ttl_ms);
  line.expected = cost_micros(line.price, line.used_ms);
  return line;
}

Value to_value(const Line& l) {
  Value v;
  v.set("name", l.name).set("provider", l.provider).set("offer", l.offer).set("region", l.region);
  v.set("price_per_hour", static_cast<double>(l.price) / 1e6).set("ttl_seconds", l.ttl_ms / 1000);
  v.set("reserved", static_cast<double>(l.reserved) / 1e6).set("expected", static_cast<double>(l.expected) / 1e6);
  v.set("expected_seconds", l.used_ms / 1000);
  if (!l.note.empty()) v.set("note", l.note);
  if (l.refused) v.set("refused", error_to_value(*l.refused));
  return v;
}

std::string to_table(const std::vector<Line>& lines) {
  std::vector<std::vector<std::string>> rows{
      {"LEASE", "PROVIDER", "OFFER", "REGION", "PER HOUR", "TTL", "RESERVED", "USED FOR", "COST"}};
  Micros reserved = 0, expected = 0;
  bool any_note = false;
  for (const Line& l : lines) {
    reserved += l.reserved;
    expected += l.expected;
    any_note = any_note || !l.note.empty();
    rows.push_back({l.name, l.provider + (l.note.empty() ? "" : " *"), l.offer, l.region, format_dollars(l.price),
                    format_duration_ms(l.ttl_ms), format_dollars(l.reserved), format_duration_ms(l.used_ms),
                    format_dollars(l.expected)});
  }
  rows.push_back({"total", "", "", "", "", "", format_dollars(reserved), "", format_dollars(expected)});
  return format_table(rows) + (any_note ? "* no configured provider has it: the price is the simulated cloud's\n" : "");
}

struct PlanCommand final : Command {
  std::string file;
  std::vector<std::string> script_arguments;
  void declare(Options& o) override {
    o.option("FILE", file, "the script; its own options follow").required();
    o.script_words(ScriptWords::mixed, script_arguments);
  }
  Exit run(App& app) override;
};

Exit PlanCommand::run(App& app) {
  ScratchHome home;
  Result<Rehearsal> what = prepare_rehearsal(app, file, script_arguments, home);
  if (!what) return fail_usage(app, what.error());
  what->unknown_calls_end_at_once = true;
  Outcome o = rehearse(*what, provider::sim::Options::calm(1), true);
  if (!o.result && o.rented.empty()) return fail(app, o.result.error());
  std::vector<Line> lines;
  for (const Rented& r : o.rented) lines.push_back(plan_line(app, r));
  const auto refused = std::find_if(lines.begin(), lines.end(), [](const Line& l) { return l.refused.has_value(); });
  if (app.json) {
    Value::Array list;
    for (const Line& l : lines) list.push_back(to_value(l));
    Value v;
    v.set("leases", std::move(list)).set("complete", o.result.ok());
    if (!o.result) v.set("error", error_to_value(o.result.error()));
    if (refused != lines.end()) v.set("error", error_to_value(*refused->refused));
    app.terminal.out(v.to_json_pretty() + "\n");
    return refused == lines.end() ? Exit::ok : Exit::script;
  }
  app.terminal.out(lines.empty() ? "the script rents nothing\n" : to_table(lines));
  if (!o.result)
    app.terminal.note(fmt::format("the script was followed up to here only: {}", o.result.error().summary()));
  return refused == lines.end() ? Exit::ok : fail(app, *refused->refused);
}

const Registered<PlanCommand> plan_row({Group::run, "plan", "what a script would rent, and what that costs"});

}  // namespace

}  // namespace rille::cli
