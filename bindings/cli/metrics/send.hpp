// Sends metrics to an OpenTelemetry collector: OTLP/HTTP with JSON, one POST for each body. Loop thread only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"

namespace rille::cli {

// `url`: the collector, whose path /v1/metrics is the standard one, or the address of metrics itself. Headers for it,
// such as a key, come from the environment: OTEL_EXPORTER_OTLP_HEADERS, "name=value,name=value". Returns the number of
// requests. Error `config`: headers would go in clear to another machine; `network` or the kind that fits the status:
// the collector refused a request or a part of its points.
Async<std::int64_t> send_otlp(Loop& loop, std::string url, std::vector<std::string> bodies);

}  // namespace rille::cli
