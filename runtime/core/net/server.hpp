// The server that a URL names, read by the parser that also connects to it.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::net {

struct Server {
  std::string host, port;  // port: the scheme's own if the URL names none
};
// Error `invalid`: not an http(s) URL. Any thread.
Result<Server> server_of(const std::string& url);

}  // namespace rille::net
