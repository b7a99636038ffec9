// `rille simulate FILE`: rehearses a script many times in simulated worlds and prints the distribution of cost and
// time. With --runs 1 it prints the events as they happen, to show what one seed does.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>

#include "bindings/cli/command.hpp"
#include "bindings/cli/rehearsal.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/provider/sim/listed.hpp"

namespace rille::cli {

namespace {

constexpr int bins = 12, bar_width = 40;

struct Spread {
  std::vector<double> sorted;
  explicit Spread(std::vector<double> values) : sorted(std::move(values)) { std::sort(sorted.begin(), sorted.end()); }
  // The nearest-rank percentile; `share` is from 0 to 1.
  double at(double share) const {
    if (sorted.empty()) return 0;
    auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
  }
  double mean() const {
    double sum = 0;
    for (double v : sorted) sum += v;
    return sorted.empty() ? 0 : sum / static_cast<double>(sorted.size());
  }
  Value to_value() const {
    return Value()
        .set("p10", at(0.1))
        .set("p50", at(0.5))
        .set("p90", at(0.9))
        .set("mean", mean())
        .set("min", at(0))
        .set("max", at(1));
  }
};

struct SimulateArguments {
  std::string file;
  std::vector<std::string> script_arguments;
  int runs = 100;
  std::uint64_t seed = 1;         // seed of the first run; each further run adds 1
  std::string weather = "usual";  // how often the simulated cloud fails: "calm", "usual" or "rough"
  std::string deadline;           // time that each run should take at most, "6h"; "": no deadline
  std::int64_t deadline_ms = 0;   // `deadline` in milliseconds; 0: no deadline
};

using Show = std::string (*)(double);
std::string show_dollars(double v) { return shown_sum(static_cast<Micros>(std::llround(v * 1e6))); }
std::string show_seconds(double v) { return format_duration_ms(static_cast<std::int64_t>(v) * 1000); }
std::string show_count(double v) { return fmt::format("{:.0f}", v); }

// Draws a bar of length `share` (0 to 1), in steps of an eighth of a character.
std::string bar(double share) {
  static const char* const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  int steps = static_cast<int>(std::lround(share * bar_width * 8));
  std::string out;
  for (int i = 0; i < steps / 8; ++i) out += "█";
  return out + eighths[steps % 8];
}

std::string histogram(const Terminal& terminal, const char* title, const Spread& spread, Show show) {
  double least = spread.at(0), most = spread.at(1);
  if (spread.sorted.size() < 3 || !(most > least)) return "";
  int counts[bins] = {}, highest = 0;
  for (double v : spread.sorted) {
    int bin = std::min(bins - 1, static_cast<int>((v - least) / (most - least) * bins));
    highest = std::max(highest, ++counts[bin]);
  }
  std::string out = fmt::format("\n{}\n", title);
  for (int i = 0; i < bins; ++i)
    out += fmt::format("{:>10} {} {}\n", show(least + (most - least) * i / bins),
                       terminal.paint(bar(static_cast<double>(counts[i]) / highest), "36"), counts[i] ? counts[i] : 0);
  return out;
}

std::string replay(const SimulateArguments& a, std::uint64_t seed) {
  std::string out = fmt::format("rille simulate {} --runs 1 --seed {}", a.file, seed);
  if (a.weather != "usual") out += " --weather " + a.weather;
  if (!a.script_arguments.empty()) out += " --";
  for (const std::string& word : a.script_arguments) out += " " + word;
  return out;
}

struct Runs {
  std::vector<Outcome> all;
  double seconds = 0;
  int well() const {
    return static_cast<int>(std::count_if(all.begin(), all.end(), [](const Outcome& o) { return o.result.ok(); }));
  }
  Spread spread(double (*of)(const Outcome&)) const {
    std::vector<double> values;
    for (const Outcome& o : all)
      if (o.result) values.push_back(of(o));
    return Spread(std::move(values));
  }
  double odds(std::int64_t deadline_ms) const {
    auto met = std::count_if(all.begin(), all.end(),
                             [&](const Outcome& o) { return o.result && o.took_us <= deadline_ms * 1000; });
    return static_cast<double>(met) / static_cast<double>(all.size());
  }
};

double dollars_of(const Outcome& o) { return static_cast<double>(o.cost_micros) / 1e6; }
double seconds_of(const Outcome& o) { return static_cast<double>(o.took_us) / 1e6; }
double preemptions_of(const Outcome& o) { return o.preemptions; }

// The prices of the machine types that the runs rented: which list price, or that they are invented.
std::map<std::string, std::string> prices_of(const Runs& runs) {
  const std::map<std::string, provider::sim::ListedType>& listed = provider::sim::listed_types();
  std::map<std::string, std::string> out;
  for (const Outcome& o : runs.all)
    for (const std::string& type : o.types) {
      const auto found = listed.find(type);
      out[type] = found == listed.end() ? "an invented price" : provider::sim::price_words(found->second);
    }
  return out;
}

Value to_value(const SimulateArguments& a, const Runs& runs) {
  Value::Array failed, outcomes;
  for (const Outcome& o : runs.all) {
    Value one;
    one.set("seed", o.seed).set("ok", o.result.ok()).set("cost", dollars_of(o)).set("seconds", seconds_of(o));
    one.set("preemptions", o.preemptions).set("announced", o.announced).set("machines", o.machines);
    outcomes.push_back(std::move(one));
    if (!o.result)
      failed.push_back(
          Value().set("seed", o.seed).set("error", error_to_value(o.result.error())).set("replay", replay(a, o.seed)));
  }
  Value v;
  v.set("runs", static_cast<std::int64_t>(runs.all.size())).set("ended_well", runs.well());
  v.set("cost", runs.spread(dollars_of).to_value()).set("seconds", runs.spread(seconds_of).to_value());
  v.set("preemptions", runs.spread(preemptions_of).to_value());
  if (a.deadline_ms)
    v.set("deadline",
          Value().set("seconds", static_cast<double>(a.deadline_ms) / 1000).set("odds", runs.odds(a.deadline_ms)));
  Value prices = Value::Object{};
  for (const auto& [type, words] : prices_of(runs)) prices.set(type, words);
  v.set("prices", std::move(prices))
      .set("failed", std::move(failed))
      .set("outcomes", std::move(outcomes))
      .set("took_seconds", runs.seconds);
  return v;
}

// Lists failures, grouped by message. Digits are removed from the message, because they depend on the seed.
std::string failures(const SimulateArguments& a, const Runs& runs) {
  struct Kind {
    int times = 0;
    double dollars = 0, seconds = 0;  // of all of them
    const Outcome* first = nullptr;
  };
  std::map<std::string, Kind> kinds;
  int failed = 0;
  for (const Outcome& o : runs.all) {
    if (o.result) continue;
    ++failed;
    std::string what = o.result.error().summary();
    std::erase_if(what, [](char c) { return c >= '0' && c <= '9'; });
    Kind& k = kinds[what];
    if (k.times++ == 0) k.first = &o;
    k.dollars += dollars_of(o);
    k.seconds += seconds_of(o);
  }
  if (!failed) return "";
  constexpr std::size_t shown_max = 10;
  std::string out = fmt::format("\n{} of {} runs failed:\n", failed, runs.all.size());
  std::size_t shown = 0;
  for (const auto& [what, k] : kinds) {
    if (++shown > shown_max)
      return out + fmt::format("  and {} more kinds; --json lists them\n", kinds.size() - shown_max);
    out += fmt::format("  {} of them, after {} and {} on average, first with seed {}: {}\n    see it with: {}\n",
                       k.times, show_seconds(k.seconds / k.times), show_dollars(k.dollars / k.times), k.first->seed,
                       k.first->result.error().summary(), replay(a, k.first->seed));
  }
  return out;
}

std::string prices_note(const Runs& runs) {
  std::string out;
  for (const auto& [type, words] : prices_of(runs))
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", type, words);
  return out.empty() ? "" : fmt::format("prices: {}\n", out);
}

std::string report(const App& app, const SimulateArguments& a, const Runs& runs) {
  Spread cost = runs.spread(dollars_of), time = runs.spread(seconds_of), lost = runs.spread(preemptions_of);
  std::string out = fmt::format("{} runs of {} on the simulated cloud, seeds {} to {}, in {:.1f} s\n\n",
                                runs.all.size(), a.file, a.seed, a.seed + runs.all.size() - 1, runs.seconds);
  const int well = runs.well();
  if (well == 0)
    return out + "no run ended well: there is no cost and no time to expect\n" + prices_note(runs) + failures(a, runs);
  if (well < int(runs.all.size())) out += fmt::format("of the {} runs that ended well:\n", well);
  std::vector<std::vector<std::string>> rows{{"", "P10", "P50", "P90", "MEAN"}};
  auto row = [&](const char* what, const Spread& s, Show show) {
    rows.push_back({what, show(s.at(0.1)), show(s.at(0.5)), show(s.at(0.9)), show(s.mean())});
  };
  row("cost", cost, show_dollars);
  row("time", time, show_seconds);
  row("preemptions", lost, show_count);
  out += format_table(rows);
  double survived = 0;
  int announced = 0;
  std::int64_t again_ms = 0;
  for (const Outcome& o : runs.all)
    if (o.result) survived += o.preemptions, announced += o.announced, again_ms += o.lost_work_ms;
  out += fmt::format("\n{:.0f} preemptions survived, {} of them by leaving in time; {} of work were done twice\n",
                     survived, announced, format_duration_ms(again_ms));
  out += prices_note(runs);
  if (a.deadline_ms)
    out += fmt::format("within {}: {:.1f} % of the runs\n", format_duration_ms(a.deadline_ms),
                       100 * runs.odds(a.deadline_ms));
  out += histogram(app.terminal, "cost", cost, show_dollars);
  out += histogram(app.terminal, "time", time, show_seconds);
  return out + failures(a, runs);
}

// Prints one event of a single simulated run; `us` is the virtual time.
void tell_event(App& app, std::int64_t us, const Value& e) {
  std::string what = e.text("event"), rest = e.text("name");
  if (what == "call" || what == "call_restarted") rest = e.text("call");
  if (what == "rent" || what == "live")
    rest += fmt::format(" at {} per hour", format_money(static_cast<Micros>(e.number("price_per_hour") * 1e6 + 0.5),
                                                        e.text("currency", "USD")));
  if (what == "checkpoint") rest = fmt::format("step {}", e.integer("step"));
  if (rest.empty() || !e.text("message").empty() || !e.text("why").empty())
    rest += (rest.empty() ? "" : ": ") + e.text("message", e.text("why", e.text("step")));
  app.terminal.note(fmt::format("{:>10}  {} {}", format_duration_ms(us / 1000), what, rest));
}

Exit show_one(App& app, const SimulateArguments& a, Rehearsal what, const provider::sim::Options& weather) {
  if (!app.json) {
    what.event = [&app](std::int64_t us, const Value& e) { tell_event(app, us, e); };
    what.print = [&app](std::string_view text) { app.terminal.out(text); };
  }
  Runs runs;
  runs.all.push_back(rehearse(what, weather, false));
  const Outcome& o = runs.all.front();
  if (app.json) {
    app.terminal.out(to_value(a, runs).to_json_pretty() + "\n");
  } else {
    app.terminal.out(fmt::format("\nseed {}: {} after {}, {} machines, {} preempted\n", o.seed,
                                 shown_sum(o.cost_micros), format_duration_ms(o.took_us / 1000), o.machines,
                                 o.preemptions));
    app.terminal.out(prices_note(runs));
    if (!o.result) app.terminal.error(o.result.error(), app.trace);
  }
  return o.result ? Exit::ok : exit_of(o.result.error());
}

struct SimulateCommand final : Command {
  SimulateArguments a;
  void declare(Options& o) override {
    o.option("FILE", a.file, "the script; its own options follow, after `--` if they have our names").required();
    o.option("-n,--runs", a.runs, "how many; 1 is shown step by step").between(1, 10'000'000);
    o.option("--seed", a.seed, "of the first run; the next run has the next seed");
    o.option("--deadline", a.deadline, "e.g. 6h: also show the odds of finishing by then");
    o.option("--weather", a.weather, "how reliable the cloud is").among({"calm", "usual", "rough"});
    o.script_words(ScriptWords::mixed, a.script_arguments);
  }
  Exit run(App& app) override;
};

Exit SimulateCommand::run(App& app) {
  if (!a.deadline.empty()) {
    Result<std::int64_t> ms = parse_duration_ms(a.deadline);
    if (!ms) return fail_usage(app, ms.error());
    a.deadline_ms = *ms;
  }
  ScratchHome home;
  Result<Rehearsal> what = prepare_rehearsal(app, a.file, a.script_arguments, home);
  if (!what) return fail_usage(app, what.error());
  auto weather = [this](std::uint64_t seed) {
    return a.weather == "calm"    ? provider::sim::Options::calm(seed)
           : a.weather == "rough" ? provider::sim::Options::rough(seed)
                                  : provider::sim::Options::usual(seed);
  };
  if (a.runs == 1) return show_one(app, a, std::move(*what), weather(a.seed));
  Runs runs;
  auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < a.runs; ++i) {
    runs.all.push_back(rehearse(*what, weather(a.seed + static_cast<std::uint64_t>(i)), false));
    // The first run's invalid or config error would repeat with every seed, so it is reported once.
    const Result<Value>& r = runs.all.back().result;
    if (i == 0 && !r && (r.error().kind == ErrorKind::invalid || r.error().kind == ErrorKind::config))
      return fail(app, r.error());
    if (!app.json && i % 16 == 15)
      app.terminal.progress(
          Value().set("what", "simulate").set("done", i + 1).set("total", a.runs).set("unit", "runs"));
  }
  runs.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  app.terminal.clear_progress();
  app.terminal.out(app.json ? to_value(a, runs).to_json_pretty() + "\n" : report(app, a, runs));
  return runs.well() == a.runs ? Exit::ok : Exit::script;
}

const Registered<SimulateCommand> simulate_row({Group::run, "simulate",
                                                "many runs on a simulated cloud: its cost, and how long it takes",
                                                Opens::nothing});

}  // namespace

}  // namespace rille::cli
