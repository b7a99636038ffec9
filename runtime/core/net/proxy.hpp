// Which proxy the environment names for a URL, for the words of an error: libcurl decides by itself, by the same rules,
// and does not say what it did. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace rille::net {

struct Proxy {
  std::string variable, url;  // "HTTPS_PROXY" and what is in it, without userinfo; both "": none
};

Proxy proxy_for(std::string_view url);

}  // namespace rille::net
