// push: the agent sends a range of a file of its work directory to a signed address, so that no byte passes the runner
// and no key reaches the machine. The range is read on the loop in pieces, as libcurl asks for them. Errors: invalid (a
// path outside the work directory, no such range), io, integrity (the file became shorter), and those of the server,
// with `http_status`. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/net/http.hpp"
#include "runtime/workflow/agent/file_server.hpp"

namespace rille::agent {

// `header`: {path, offset, length, url, headers = {{name, value}..}} -> {mark}
Async<Reply> push(net::HttpClient& http, std::string root, Value header, CancelToken token);

}  // namespace rille::agent
