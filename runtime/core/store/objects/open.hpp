// What opening a store needs of an endpoint. Private to objects/. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::objects {

struct WebPlace {
  std::string scheme, host;  // host: with the port, if the URL has one
};
// Error `config`: the endpoint is not http(s)://HOST[:PORT].
Result<WebPlace> web_place(const std::string& endpoint);
// Whether a host is an IP address or localhost, which has no subdomains.
bool is_address(std::string_view host);

}  // namespace rille::objects
