// The story of a run: its audit trail as sentences, with its beginning and its end.
#include <fmt/format.h>

#include <algorithm>

#include "bindings/cli/event_text.hpp"
#include "bindings/cli/report/report.hpp"
#include "bindings/cli/report/texts.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::cli {

namespace {

constexpr std::size_t story_max = 2000;  // sentences

// Events that runs do not print, because they are of interest only afterwards.
std::string quiet_event_text(const Value& e, const std::string& what) {
  if (what == "resumed") {
    const std::string by = fmt::format("resumed by process {} on {}", e.integer("process"), e.text("host"));
    if (!e.boolean("died")) return by + ", after it was suspended";
    return by + fmt::format("; the process before had ended without a word, and was last heard of at {}",
                            format_utc(e.integer("last_us")));
  }
  if (what == "idle") return fmt::format("an idle machine ended itself: {}", e.text("message"));
  if (what == "replace")
    return fmt::format("a new machine for {}: generation {}", e.text("name"), e.integer("generation"));
  if (what == "replace_waits") return fmt::format("no new machine yet: {}", e.text("message"));
  if (what == "call_moved")
    return fmt::format("call {} goes on on machine {} {}", e.text("call"), e.integer("generation"),
                       e.boolean("from_checkpoint") ? "from its last checkpoint" : "from its beginning");
  if (what == "call_left") return fmt::format("call {} left its machine at step {}", e.text("call"), e.integer("step"));
  if (what == "checkpoint_kept") return fmt::format("the checkpoint of step {} is kept", e.integer("step"));
  if (what == "checkpoint_restored") return fmt::format("went on from the checkpoint of step {}", e.integer("step"));
  if (what == "set_up_again")
    return fmt::format("set up again on machine {}: {}", e.integer("generation"), e.text("what"));
  if (what == "not_resized") return fmt::format("{} keeps its type: {}", e.text("name"), e.text("why"));
  if (what == "paused") return fmt::format("paused: {}", e.text("message"));
  if (what == "code") return "goes on with another script: " + e.text("script");
  if (what == "detached") return fmt::format("{} outlives the run", e.text("name", e.text("lease")));
  if (what == "divergence") return "the script departs from its record: " + e.text("message");
  return "";
}

const char* kind_of_event(const std::string& what) {
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return what == name; });
  };
  if (what.starts_with("checkpoint")) return "checkpoint";
  if (is({"retry", "call_restarted", "reconnect", "call_moved", "call_left"})) return "retry";
  if (is({"fiber_failed", "warning", "refused", "divergence"})) return "error";
  if (is({"resumed", "paused", "code"})) return "run";
  return "machine";
}

Value sentence(std::int64_t at_us, const engine::RunRow& run, const char* kind, const std::string& text) {
  Value v;
  v.set("at", static_cast<double>(at_us - run.created_us) / 1e6).set("kind", kind).set("text", plain_text(text));
  return v;
}

Value ending_of(const engine::RunRow& run, const std::string& state, std::int64_t last_us) {
  const std::int64_t at_us = std::max(run.ended_us ? run.ended_us : run.updated_us, last_us);
  if (run.error) return sentence(at_us, run, "error", fmt::format("{}: {}", state, run.error->summary()));
  if (run.cancel_reason) return sentence(at_us, run, "run", fmt::format("{}: {}", state, run.cancel_reason->message));
  if (state == "interrupted")
    return sentence(at_us, run, "error", "interrupted: its process has ended without a word; last heard of then");
  return sentence(at_us, run, "run", state);
}

// A training writes many checkpoints: those that follow one another are one sentence.
struct Checkpoints {
  std::int64_t count = 0, first_step = 0, last_step = 0, first_us = 0;
  void add(const Value& e) {
    const std::int64_t step = e.integer("step");
    if (!count++) first_step = step, first_us = e.integer("at_us");
    last_step = step;
  }
  std::string text() const {
    if (count == 1) return fmt::format("checkpoint at step {}", first_step);
    return fmt::format("{} checkpoints, steps {} to {}", count, first_step, last_step);
  }
};

class Story {
 public:
  explicit Story(const engine::RunRow& run) : run_(run) {}
  void add(const Value& e) {
    const std::string what = e.text("event");
    last_us_ = std::max(last_us_, e.integer("at_us"));
    if (what == "checkpoint") return checkpoints_.add(e);
    std::string text = quiet_event_text(e, what);
    if (text.empty()) text = event_text(e);
    if (text.empty()) return;
    tell_checkpoints();
    tell(e.integer("at_us"), kind_of_event(what), text);
  }
  Value end(const std::string& state) {
    tell_checkpoints();
    if (left_out_)
      out_.push_back(sentence(last_us_, run_, "run", fmt::format("{} more: rille logs --json", left_out_)));
    out_.push_back(ending_of(run_, state, last_us_));
    return std::move(out_);
  }
  void tell(std::int64_t at_us, const char* kind, const std::string& text) {
    if (out_.size() < story_max) out_.push_back(sentence(at_us, run_, kind, text));
    else ++left_out_;
  }

 private:
  void tell_checkpoints() {
    if (checkpoints_.count) tell(checkpoints_.first_us, "checkpoint", checkpoints_.text());
    checkpoints_ = {};
  }

  const engine::RunRow& run_;
  Value::Array out_;
  Checkpoints checkpoints_;
  std::size_t left_out_ = 0;
  std::int64_t last_us_ = run_.created_us;
};

}  // namespace

Value story_of(const engine::RunRow& run, const std::string& state, const std::vector<Value>& events) {
  Story story(run);
  story.tell(run.created_us, "run", "began: " + run.script);
  for (const Value& e : events) story.add(e);
  return story.end(state);
}

Value checkpoints_of(const engine::RunRow& run, const std::vector<Value>& events) {
  Value::Array out;
  for (const Value& e : events) {
    const std::string what = e.text("event");
    if (!what.starts_with("checkpoint")) continue;
    Value v;
    v.set("at", static_cast<double>(e.integer("at_us") - run.created_us) / 1e6).set("event", what);
    v.set("step", e.integer("step")).set("directory", plain_text(e.text("directory")));
    if (const double* size = e["size_bytes"].as_number()) v.set("size_bytes", *size);
    out.push_back(std::move(v));
  }
  if (out.size() > story_max) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(story_max));
  return out;
}

}  // namespace rille::cli
