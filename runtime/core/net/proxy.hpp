// The proxy that the environment selects for a URL, for error messages only: libcurl applies the same rules, but does
// not report its choice. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace rille::net {

struct Proxy {
  std::string variable, url;  // "HTTPS_PROXY", and that variable's value without user and password; both "": no proxy
};

Proxy proxy_for(std::string_view url);

}  // namespace rille::net
