// sim_exhaustive: kills the process of a script at every place, and at every pair of places, in worlds where nothing is
// left to chance: a schedule is exactly (script, first place, second place). docs/testing.md has the words.
//   sim_exhaustive [--language cpp|lua] [--every N]     all single places, and every N-th pair
//   sim_exhaustive --script race                        of one script
//   sim_exhaustive --script race --crash 17,4           one schedule, with its events
// A crash "17" is at the 17th place of the first process; "17,4" dies again at the 4th of the next. After "17,gc"
// the run is not resumed, and `rille gc --now` ends its machines; with "17,gc4" that dies at its 4th place, and comes
// again.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <span>
#include <tuple>

#include "tests/sim/cpp_script.hpp"
#include "tests/sim/lua_script.hpp"

using namespace rille;
using namespace rille::torture;

namespace {

struct Schedule {
  int first = 0, second = 0;  // 0: no death
  bool alone = false;         // the run is not resumed; the second death is the reaper's
  std::string text() const {
    if (!first) return "none";
    if (alone) return fmt::format("{},gc{}", first, second ? std::to_string(second) : "");
    return second ? fmt::format("{},{}", first, second) : std::to_string(first);
  }
};

std::optional<Schedule> read_schedule(std::string_view text) {
  Schedule s;
  const char* end = text.data() + text.size();
  auto [at, ec] = std::from_chars(text.data(), end, s.first);
  if (ec != std::errc() && text != "none") return {};
  if (ec != std::errc() || at == end) return s;
  std::string_view rest(at + 1, static_cast<std::size_t>(end - at - 1));
  s.alone = rest.starts_with("gc");
  if (s.alone) rest.remove_prefix(2);
  if (rest.empty()) return s.alone ? std::optional(s) : std::nullopt;
  if (std::from_chars(rest.data(), end, s.second).ptr != end) return {};
  return s;
}

// What a script comes to when nothing dies.
struct Calm {
  std::string wrong;
  std::set<std::string> finished;
  int places = 0;
};

const std::string& home() {
  static const std::string path = scratch_path("exhaustive");
  return path;
}

using Dies = std::function<bool(const Place&)>;

// The time without a runner depends on the place of the death.
Conditions conditions(const Script& script, const Schedule& schedule, Dies dies, bool trace) {
  Conditions c;
  c.cloud = script.cloud ? script.cloud() : provider::sim::Options::calm(1);
  c.cloud.provisioning_ms = 2'000;  // a waiting process asks again and again, and these places are all alike
  c.cloud.shutdown_ms = 1'000;
  c.trace = trace;
  c.home = home();
  c.dies = std::move(dies);
  c.meanwhile = [&schedule](World& w, int deaths) {
    constexpr std::int64_t downtimes_ms[] = {1'000, 90'000, 0, 3'600'000};
    w.alone = schedule.alone;
    w.time.pass(downtimes_ms[(deaths == 1 ? schedule.first : schedule.second) / 2 % 4]);
  };
  return c;
}

// The problems found; "" if none. The steps of a run that was not resumed are not checked.
std::string play(World& world, const Script& script, const Calm& calm) {
  std::string wrong = world.live(script);
  if (!wrong.empty() || world.alone || script.steps_vary) return wrong;
  for (const std::string& step : calm.finished)
    if (!world.finished.contains(step) || !world.effects[step]) return "the step " + step + " never happened";
  for (const std::string& step : world.finished)
    if (!calm.finished.contains(step)) return "the step " + step + " happens only here";
  return "";
}

Calm calm_run(const Script& script) {
  const Schedule none;
  World world(conditions(script, none, nullptr, false));
  (void)world.live(script);  // the second pass prints the problems
  Calm calm{"", world.finished, world.lives.front()};
  World again(conditions(script, none, nullptr, false));
  calm.wrong = play(again, script, calm);
  if (calm.wrong.empty() && again.digest() != world.digest()) calm.wrong = "not the same the second time";
  return calm;
}

struct Wanted {
  std::string language, script;
  int every = 1;
  std::optional<Schedule> crash;
};

std::optional<Wanted> read(int argc, char** argv) {
  Wanted w;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--language")) w.language = argv[i + 1];
    else if (!std::strcmp(argv[i], "--script")) w.script = argv[i + 1];
    else if (!std::strcmp(argv[i], "--every")) w.every = std::atoi(argv[i + 1]);
    else if (!std::strcmp(argv[i], "--crash")) {
      if (w.crash = read_schedule(argv[i + 1]); !w.crash) return {};
    } else return {};
  }
  if (argc % 2 == 0 || w.every < 0 || (w.crash && w.script.empty())) return {};
  return w;
}

// All schedules of one script, as a tree of processes: at each place this one forks, and in the copy the simulated
// process dies there; so what comes before a place is played once. A copy reports what it has counted through a pipe.
class Explorer {
 public:
  Explorer(const Script& script, int every, const char* program)
      : script_(script), every_(every), program_(program), calm_(calm_run(script)) {}

  Sometimes all() {
    World world(conditions(
        script_, at_, [this](const Place& p) { return branches(p); }, false));
    world_ = &world;
    std::string wrong = !calm_.wrong.empty() ? calm_.wrong : play(world, script_, calm_);
    if (!wrong.empty()) failed(wrong);
    if (at_.first) ++sum_[at_.second ? "#pairs" : at_.alone ? "#alone" : "#single"];
    for (const auto& [what, n] : world.seen) sum_[what] += n;
    if (up_ >= 0) report();
    return sum_;
  }

 private:
  static constexpr int shown_max = 5;

  // In the copy that dies here: true.
  bool branches(const Place& p) {
    if (p.process > 2 || (p.process == 1) != !at_.first || at_.second) return false;
    if (p.process == 1) ++sum_["#places"];
    if (same_as_last(p)) return false;
    if (p.process == 1) ++sum_["#distinct"];
    if (p.process == 1 && !at_.first) return branch({p.number, 0, false}) || branch({p.number, 0, true});
    ++sum_["#of pairs"];
    return every_ && (at_.first * 31 + p.number) % every_ == 0 && branch({at_.first, p.number, at_.alone});
  }

  // Before something, at the instant after something else: nothing has happened in between that a death would leave
  // behind, unless a body ran, or an outcome was passed to the script. What follows is the same, death for death.
  bool same_as_last(const Place& p) {
    std::int64_t bodies = 0;
    for (const auto& [step, n] : world_->effects) bodies += n;
    const Moment now{p.process, world_->time.monotonic_ns(), bodies, world_->finished.size()};
    const bool same = !p.done && last_done_ && now == last_;
    last_ = now;
    last_done_ = p.done && p.where != "agent get";  // after which files are put in order
    return same;
  }

  bool branch(const Schedule& schedule) {
    Files files(home());  // they are the copy's to change
    int ends[2];
    if (pipe(ends) != 0) return false;
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
      files.leave();
      close(ends[0]);
      if (up_ >= 0) close(up_);
      up_ = ends[1];
      at_ = schedule;
      sum_.clear();
      return true;
    }
    close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
    close(ends[0]);
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
      const Schedule mine = std::exchange(at_, schedule);
      failed(fmt::format("this program itself ended with status {}", status));
      at_ = mine;
    }
    Result<Value> told = Value::from_json(text);
    if (told && told->as_object())
      for (const auto& [what, n] : *told->as_object()) sum_[what] += told->integer(what);
    return false;
  }

  void report() {
    Value told;
    for (const auto& [what, n] : sum_) told.set(what, n);
    const std::string text = told.to_json();
    std::fflush(stdout);
    bool written = write(up_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }

  void failed(const std::string& wrong) {
    if (++sum_["#wrong"] > shown_max) return;
    fmt::print("{} --crash {}: {}\n  replay it: {} --script {} --crash {}\n", script_.name, at_.text(), wrong, program_,
               script_.name, at_.text());
  }

  // Keeps a folder as it is now.
  class Files {
   public:
    explicit Files(std::string path) : path_(std::move(path)) {
      std::error_code ec;
      if (std::filesystem::exists(path_, ec))
        std::filesystem::copy(path_, kept(), std::filesystem::copy_options::recursive, ec);
    }
    ~Files() {
      if (path_.empty()) return;
      std::error_code ec;
      std::filesystem::remove_all(path_, ec);
      if (std::filesystem::exists(kept(), ec)) std::filesystem::rename(kept(), path_, ec);
    }
    void leave() { path_.clear(); }

   private:
    std::string kept() const { return fmt::format("{}-{}", path_, getpid()); }
    std::string path_;
  };

  const Script& script_;
  const int every_;
  const char* program_;
  Calm calm_;
  Schedule at_;  // where this process is
  World* world_ = nullptr;
  using Moment = std::tuple<int, std::int64_t, std::int64_t, std::size_t>;
  Moment last_;  // of the place before
  bool last_done_ = false;
  Sometimes sum_;
  int up_ = -1;  // to the process that this one was forked from
};

// Before a create or an attach is after the row that announces it.
const char* const must_have_happened[] = {"died before journal",
                                          "died after journal",
                                          "died before provider offers",
                                          "died after provider offers",
                                          "died after provider create",
                                          "died before provider describe",
                                          "died after provider describe",
                                          "died before provider list",
                                          "died after provider list",
                                          "died before provider terminate",
                                          "died after provider terminate",
                                          "died before agent connect",
                                          "died after agent connect",
                                          "died before agent start",
                                          "died after agent start",
                                          "died after agent attach",
                                          "died before agent forget",
                                          "died after agent forget",
                                          "died before agent put",
                                          "died after agent put",
                                          "died before agent get",
                                          "died after agent get",
                                          "died before agent preempt",
                                          "died after agent preempt",
                                          "event call_left",
                                          "resumed",
                                          "left alone",
                                          "reaped a lease",
                                          "second generation",
                                          "event call_moved",
                                          "event refused",
                                          "a machine came and went unseen",
                                          "so was the estimate"};
// Only the scripts in Lua resize.
const char* const must_have_happened_in_lua[] = {"died after provider resize", "event resized", "event not_resized"};

int tell_one(const Script& script, const Schedule& schedule) {
  Calm calm = calm_run(script);
  Dies dies = [&schedule](const Place& p) {
    return (p.process == 1 && p.number == schedule.first) || (p.process == 2 && p.number == schedule.second);
  };
  World world(conditions(script, schedule, std::move(dies), true));
  std::string wrong = play(world, script, calm);
  for (std::size_t i = 0; i < world.lives.size(); ++i)
    fmt::print("process {} came to {} places\n", i + 1, world.lives[i]);
  fmt::print("{}\n", wrong.empty() ? "as it should be: " + script.result : "WRONG: " + wrong);
  return wrong.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<Wanted> wanted = read(argc, argv);
  if (!wanted) {
    fmt::print(stderr,
               "usage: sim_exhaustive [--language cpp|lua] [--script NAME] [--every N (0: no pairs)]\n"
               "       sim_exhaustive --script NAME --crash PLACE[,PLACE | ,gc[PLACE]]\n");
    return 2;
  }
  std::vector<Script> all;
  if (wanted->language != "lua") all.insert(all.end(), declared_scripts().begin(), declared_scripts().end());
  if (wanted->language != "cpp") all.insert(all.end(), lua_scripts().begin(), lua_scripts().end());
  if (!wanted->script.empty()) std::erase_if(all, [&](const Script& s) { return s.name != wanted->script; });
  if (all.empty()) {
    fmt::print(stderr, "there is no script '{}'\n", wanted->script);
    return 2;
  }
  if (wanted->crash) return tell_one(all.front(), *wanted->crash);
  Sometimes sum;
  fmt::print("{:<20}{:>8}{:>10}{:>8}{:>12}{:>10}{:>8}{:>9}\n", "script", "places", "distinct", "single", "left alone",
             "pairs", "wrong", "seconds");
  auto began = std::chrono::steady_clock::now();
  auto seconds_since = [](auto then) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
  };
  for (const Script& script : all) {
    auto then = std::chrono::steady_clock::now();
    Sometimes s = Explorer(script, wanted->every, argv[0]).all();
    fmt::print("{:<20}{:>8}{:>10}{:>8}{:>12}{:>10}{:>8}{:>9.1f}\n", script.name, s["#places"], s["#distinct"],
               s["#single"], s["#alone"], s["#pairs"], s["#wrong"], seconds_since(then));
    std::fflush(stdout);
    for (const auto& [what, n] : s) sum[what] += n;
  }
  for (const auto& [what, n] : sum)
    if (what.starts_with("died ")) fmt::print("{:>10}  {}\n", n, what);
  const auto demand = [&sum](std::span<const char* const> all_of) {
    for (const char* what : all_of)
      if (!sum[what]) ++sum["#wrong"], fmt::print("never happened: {}\n", what);
  };
  if (wanted->script.empty()) demand(must_have_happened);
  if (wanted->script.empty() && wanted->language != "cpp") demand(must_have_happened_in_lua);
  fmt::print(
      "{} scripts, {} places, {} of them distinct; {} schedules: {} single crashes, {} left to the reaper, {} "
      "of {} pairs{}; {} wrong; {:.1f} s\n",
      all.size(), sum["#places"], sum["#distinct"], sum["#single"] + sum["#alone"] + sum["#pairs"], sum["#single"],
      sum["#alone"], sum["#pairs"], sum["#of pairs"], sum["#pairs"] == sum["#of pairs"] ? "" : " (a sample)",
      sum["#wrong"], seconds_since(began));
  return sum["#wrong"] ? 1 : 0;
}
