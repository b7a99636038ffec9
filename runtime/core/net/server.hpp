// The server in a URL, found by the same parser that later connects to it.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::net {

struct Server {
  std::string host, port;  // port: the scheme's default if the URL has none
};
// Error `invalid`: not an http(s) URL. Any thread.
Result<Server> server_of(const std::string& url);

}  // namespace rille::net
