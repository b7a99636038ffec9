// `rille report`: a page about a run, or about several compared; or a run's timeline as a trace.
#include <fmt/format.h>

#include "bindings/cli/command.hpp"
#include "bindings/cli/report/report.hpp"
#include "bindings/cli/runs.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::cli {

namespace {

constexpr std::size_t compared_max = 20;

struct ReportCommand final : Command {
  std::vector<std::string> ids;
  std::string html, trace;
  void declare(Options& o) override {
    o.option("RUN", ids, "its id, a unique beginning of it, or `last`; several are compared").required();
    Option page = o.option("--html", html, "the page's file, otherwise report-RUN.html here; -: standard output");
    o.option("--trace", trace, "write the timeline for ui.perfetto.dev to this file instead; -: standard output")
        .excludes(page);
  }
  Exit run(App& app) override;
  Result<Value::Array> gather(const App& app) const;
};

Result<Value::Array> ReportCommand::gather(const App& app) const {
  if (ids.size() > compared_max)
    return make_error(ErrorKind::invalid, fmt::format("{} runs: at most {} are compared", ids.size(), compared_max));
  if (ids.size() > 1 && !trace.empty())
    return make_error(ErrorKind::invalid, "--trace takes one run", "write a file for each");
  Value::Array out;
  for (const std::string& id : ids) {
    RILLE_TRY(engine::RunRow run, app.engine->run(id));
    RILLE_TRY(Value report, report_of(app, run));
    out.push_back(std::move(report));
  }
  return out;
}

// Writes the text to the file, or for "-" to standard output.
Exit write_report(App& app, const std::string& file, const std::string& text) {
  if (file == "-") {
    app.terminal.out(text);
    return Exit::ok;
  }
  if (Result<> written = store::write_file_atomic(file, text); !written) return fail(app, written.error());
  app.terminal.note("wrote " + file);
  return Exit::ok;
}

Exit ReportCommand::run(App& app) {
  Result<Value::Array> reports = gather(app);
  if (!reports) return fail(app, reports.error());
  if (!trace.empty()) return write_report(app, trace, report_trace(reports->front()));
  if (app.json) {
    const Value all = ids.size() == 1 ? reports->front() : Value(*reports);
    app.terminal.out(all.to_json_pretty() + "\n");
    if (html.empty() || html == "-") return Exit::ok;
  }
  std::string names;
  for (const Value& r : *reports) names += "-" + r["run"].text("id");
  return write_report(app, html.empty() ? "report" + names + ".html" : html, report_page(*reports));
}

const Registered<ReportCommand> report_row({Group::look, "report", "a page about a run: timeline, curves, money"});

}  // namespace

}  // namespace rille::cli
