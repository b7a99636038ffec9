// What `rille serve` answers: a list of runs and of what is rented, the page of `rille report` for each run, the data
// of both, and metrics for a monitor. It only reads: the journal, logs and metrics of this machine; it asks no
// provider. docs/design/reports.md. Loop thread only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bindings/cli/app.hpp"
#include "bindings/cli/metrics/formats.hpp"
#include "runtime/core/net/http_server.hpp"

namespace rille::cli {

// {runs, leases, home, more?}: the newest runs, and what is rented.
Result<Value> list_of(const App& app);

class Site {
 public:
  // Every path begins with "/TOKEN/", or the request has the header "Authorization: Bearer TOKEN"; else 403.
  Site(const App& app, std::string token) : app_(app), token_(std::move(token)) {}

  net::HttpAnswer answer(const net::RequestHead& head);

 private:
  Result<std::string> monitored();
  Result<> add_runs(PrometheusText& text);
  const MetricList& metrics_of(const std::string& run);

  const App& app_;
  const std::string token_;
  struct Read {
    std::string files;  // names and sizes when they were read
    MetricList last;    // the last point of each series
  };
  std::map<std::string, Read> metrics_;  // of the runs that the last answer to a monitor named
};

// Names what a page of these runs shows, so that a page asks in vain while it has not changed: it changes when the
// journal, a log or a metric is written, and every 5 seconds while time itself changes the page. "": of the list.
Result<std::string> version_of(const App& app, const std::vector<engine::RunRow>& runs);

}  // namespace rille::cli
