#include "bindings/cli/metrics/send.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/net/http.hpp"
#include "runtime/core/net/loopback.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/core/net/sign/parts.hpp"

namespace rille::cli {

namespace {

// opentelemetry.io/docs/specs/otel/protocol/exporter: an address without a path is the collector's.
std::string address_of_metrics(std::string url) {
  const std::size_t scheme = url.find("://"), path = scheme == url.npos ? url.npos : url.find('/', scheme + 3);
  if (path == url.npos) return url + "/v1/metrics";
  return path + 1 == url.size() ? url + "v1/metrics" : url;
}

// "name=value,name=value"; a value is written as in a URL.
Result<net::Headers> headers_of_environment() {
  net::Headers out;
  const char* const set = std::getenv("OTEL_EXPORTER_OTLP_HEADERS");
  for (std::string_view rest = set ? set : ""; !rest.empty();) {
    const std::size_t end = rest.find(',');
    const std::string_view pair = rest.substr(0, end);
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    const std::size_t sign = pair.find('=');
    if (sign == pair.npos || trimmed(pair.substr(0, sign)).empty())
      return make_error(ErrorKind::config, "OTEL_EXPORTER_OTLP_HEADERS is not name=value,name=value");
    out.emplace_back(trimmed(pair.substr(0, sign)), net::percent_decode(trimmed(pair.substr(sign + 1))));
  }
  return out;
}

// A key in the headers would be readable on every network between here and the collector.
Result<> check_secret(std::string_view url, const net::Headers& headers) {
  const std::size_t scheme = url.find("://"), from = scheme == url.npos ? 0 : scheme + 3;
  if (headers.empty() || lower_case(url.substr(0, from)) == "https://") return {};
  std::string_view host = url.substr(from, url.find_first_of("/?#", from) - from);
  if (const std::size_t user = host.rfind('@'); user != host.npos) host.remove_prefix(user + 1);
  const std::size_t port = host.find(':', host.starts_with('[') ? host.find(']') : 0);
  host = host.substr(0, port);
  if (net::is_loopback_host(host)) return {};
  return make_error(ErrorKind::config,
                    fmt::format("--otlp: the headers of OTEL_EXPORTER_OTLP_HEADERS would go to {} in clear", host),
                    "give an address with https://, or unset OTEL_EXPORTER_OTLP_HEADERS");
}

// A collector that takes a request may still refuse some of its points.
Result<> refused_points(const std::string& body, const std::string& url) {
  const Result<Value> answer = plain_json(body);
  if (!answer) return {};
  const Value& partial = (*answer)["partialSuccess"];
  const std::string count = partial["rejectedDataPoints"].as_string()
                                ? partial.text("rejectedDataPoints")
                                : std::to_string(partial.integer("rejectedDataPoints"));
  if (count == "0") return {};
  return make_error(ErrorKind::network, fmt::format("{} refused {} points: {}", net::redact_url(url), count,
                                                    partial.text("errorMessage", "it does not say why")));
}

}  // namespace

Async<std::int64_t> send_otlp(Loop& loop, std::string url, std::vector<std::string> bodies) {
  net::HttpClient client(loop);
  RILLE_CO_TRY(const net::Headers headers, headers_of_environment());
  RILLE_CO_CHECK(check_secret(url, headers));
  url = address_of_metrics(url);
  for (std::string& body : bodies) {
    net::HttpRequest request;
    request.method = "POST", request.url = url, request.headers = headers, request.body = std::move(body);
    request.headers.emplace_back("Content-Type", "application/json");
    request.idempotent = true;  // a point that comes twice is the same point
    RILLE_CO_TRY(const net::HttpResponse answer, co_await client.send(request));
    if (!answer.ok()) co_return net::status_error(request, answer);
    RILLE_CO_CHECK(refused_points(answer.body, url));
  }
  co_return static_cast<std::int64_t>(bodies.size());
}

}  // namespace rille::cli
