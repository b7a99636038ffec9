// report_trace: the trace event format of Chrome ("Trace Event Format", google docs
// 1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bindings/cli/report/report.hpp"

namespace rille::cli {

namespace {

constexpr int script_process = 1, machines_process = 2;  // ids of the two groups of tracks

double trace_us(double seconds) { return std::round(seconds * 1e6); }

Value trace_event(const char* phase, int process, std::int64_t thread, double at_us) {
  Value v;
  v.set("ph", phase).set("pid", process).set("tid", thread).set("ts", at_us);
  return v;
}

Value track_name(const char* what, int process, std::int64_t thread, const std::string& name) {
  Value args, v = trace_event("M", process, thread, 0);
  v.set("name", what).set("args", args.set("name", name));
  return v;
}

// Numbers the tracks of one group by name, and names each once.
struct Tracks {
  int process;
  std::map<std::string, std::int64_t> numbers = {};

  std::int64_t of(const std::string& name, Value::Array& out) {
    const auto [it, fresh] = numbers.emplace(name, static_cast<std::int64_t>(numbers.size()) + 1);
    if (fresh) out.push_back(track_name("thread_name", process, it->second, name));
    return it->second;
  }
};

void add_spans(Value::Array& out, const Value::Array& rows, Tracks& tracks, bool machines) {
  for (const Value& row : rows) {
    const std::string name = row.text(machines ? "name" : "key");
    const std::string track = machines ? fmt::format("{} {}", name, row.integer("generation")) : row.text("fiber");
    Value v = trace_event("X", tracks.process, tracks.of(track, out), trace_us(row.number("start")));
    Value args;
    for (const char* key : {"state", "source", "attempt", "machine", "provider", "type", "cost", "value"})
      if (!row[key].is_null()) args.set(key, row[key]);
    if (!row["error"].is_null())
      args.set("error", row["error"].as_string() ? row.text("error") : row["error"].text("message"));
    v.set("dur", trace_us(row.number("seconds"))).set("name", name);
    v.set("cat", machines ? std::string("machine") : row.text("kind")).set("args", std::move(args));
    out.push_back(std::move(v));
  }
}

void add_counter(Value::Array& out, const std::string& name, double at, double value) {
  Value args, v = trace_event("C", script_process, 0, trace_us(at));
  v.set("name", name).set("args", args.set("value", value));
  out.push_back(std::move(v));
}

void add_counters(Value::Array& out, const Value& report) {
  for (const Value& s : *report["series"].as_array())
    for (const Value& point : *s["points"].as_array()) {
      const Value::Array& p = *point.as_array();
      if (p[1].as_number() && p[2].as_number())
        add_counter(out, fmt::format("{} ({})", s.text("name"), s.text("source")), *p[1].as_number(),
                    *p[2].as_number());
    }
  // Dollars per hour: between two prices the sum grows evenly, which counters cannot show.
  std::map<double, double> changes;
  for (const Value& piece : *report["money"]["pieces"].as_array()) {
    const Value::Array& p = *piece.as_array();
    const double from = *p[0].as_number(), to = std::max(*p[1].as_number(), from + 1e-6);
    const double rate = *p[2].as_number() / 1e6 / (to - from) * 3600;
    changes[from] += rate;
    changes[to] -= rate;
  }
  double rate = 0;
  for (const auto& [at, change] : changes)
    add_counter(out, "dollars per hour", at, rate = std::max(0.0, rate + change));
}

}  // namespace

std::string report_trace(const Value& report) {
  Value::Array events;
  events.push_back(track_name("process_name", script_process, 0, report["run"].text("name")));
  events.push_back(track_name("process_name", machines_process, 0, "machines"));
  Tracks fibers{script_process}, machines{machines_process};
  add_spans(events, *report["entries"].as_array(), fibers, false);
  add_spans(events, *report["machines"].as_array(), machines, true);
  for (const Value& s : *report["story"].as_array()) {
    Value v = trace_event("i", script_process, 0, trace_us(s.number("at")));
    events.push_back(v.set("s", "g").set("name", s.text("text")).set("cat", s.text("kind")));
  }
  add_counters(events, report);
  Value trace;
  trace.set("traceEvents", std::move(events)).set("displayTimeUnit", "ms");
  return trace.to_json() + "\n";
}

}  // namespace rille::cli
