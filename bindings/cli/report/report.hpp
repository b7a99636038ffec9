// Reports: what is known of a run, as one value, and that value as a page or a comparison. They read the journal, the
// run's log and its metrics, all on this machine; they ask no provider. Texts in the value are safe to show: control
// characters are shown as text (texts.hpp). docs/design/reports.md. Loop thread only.
#pragma once

#include <string>

#include "bindings/cli/app.hpp"

namespace rille::cli {

// {run, entries, machines, money, series, story, checkpoints, log, sources, children, environment}; times are seconds
// since the run's start. Fails with `io` or `integrity` if the journal cannot be read.
Result<Value> report_of(const App& app, const engine::RunRow& run);

// A page of HTML that needs nothing else: of one report, or of several, compared. `live`: the address, relative to the
// page's, where a page that `rille serve` sends asks for newer data; "": the page is a file.
std::string report_page(const Value::Array& reports, const std::string& live = {});

// The page of serve/list.cpp's value.
std::string list_page(const Value& list, const std::string& live);

// The timeline in Chrome's trace format, which ui.perfetto.dev and chrome://tracing open: a track for each fiber and
// each machine, the story as instants, and the series and the dollars as counters.
std::string report_trace(const Value& report);

// The parts of report_of that need more than a few lines.
// money.cpp: {spent_micros, pieces = {{from, to, micros}, ..}, limit_micros?, costs?, unknown?}
Value money_of(const std::vector<lease::Lease>& leases, const lease::Money* budget, std::int64_t begin_us,
               std::int64_t now_us);
// story.cpp: {{at, kind, text}, ..} in the order of time
Value story_of(const engine::RunRow& run, const std::string& state, const std::vector<Value>& events);
// {{at, event, step, ..}, ..}
Value checkpoints_of(const engine::RunRow& run, const std::vector<Value>& events);
// series.cpp: {{name, source, points = {{step, at, value}, ..}, count, ..}, ..}
Result<Value> series_of(const App& app, const engine::RunRow& run, const std::vector<Value>& entries);

}  // namespace rille::cli
