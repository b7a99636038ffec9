#include "runtime/core/net/proxy.hpp"

#include <algorithm>
#include <cstdlib>

#include "runtime/core/base/text.hpp"
#include "runtime/core/net/redact.hpp"

namespace rille::net {

namespace {

std::string host_of(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  url = url.substr(0, url.find_first_of("/?#"));
  if (const std::size_t at = url.rfind('@'); at != std::string_view::npos) url.remove_prefix(at + 1);
  if (url.starts_with('[')) return lower_case(url.substr(1, url.find(']') - 1));
  return lower_case(url.substr(0, url.find(':')));
}

// Whether no_proxy lists the host: a name in that comma- or space-separated list matches itself and its subdomains.
bool excepted(const std::string& host) {
  const char* list = std::getenv("no_proxy");
  if (!list) list = std::getenv("NO_PROXY");
  std::string_view rest = list ? list : "";
  if (rest == "*") return true;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(", "), rest.size());
    std::string name = lower_case(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (name.starts_with('.')) name.erase(0, 1);
    if (!name.empty() && (host == name || host.ends_with("." + name))) return true;
  }
  return false;
}

}  // namespace

Proxy proxy_for(std::string_view url) {
  if (url.find("://") == std::string_view::npos || excepted(host_of(url))) return {};
  const bool tls = url.starts_with("https://");
  // HTTP_PROXY is not read: the client of a CGI program could set it with a header (httpoxy).
  for (const char* variable :
       {tls ? "https_proxy" : "http_proxy", tls ? "HTTPS_PROXY" : "http_proxy", "all_proxy", "ALL_PROXY"}) {
    const char* value = std::getenv(variable);
    if (!value || !*value) continue;
    const std::string text = value;
    return {variable, redact_url(text.find("://") == std::string::npos ? "http://" + text : text)};
  }
  return {};
}

}  // namespace rille::net
