// The head of an HTTP/1.1 request that HttpServer receives (RFC 9112). It reads less than the standard allows: GET and
// HEAD without a body, for a path of this server; everything else is refused. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::net {

constexpr std::size_t request_head_bytes_max = 16 << 10;
constexpr std::size_t request_headers_max = 100;

struct RequestHead {
  bool head = false;  // HEAD instead of GET
  std::string path;   // begins with "/", as it was sent: no %xx is decoded
  std::string query;  // what follows "?"
  std::string host;   // of the Host header, without the port and without the brackets of an IPv6 address
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case; values without outer spaces

  // the first header of that name; "" if there is none
  std::string_view header(std::string_view lower_case_name) const;
};

// `text`: all bytes up to and including the empty line. Error `invalid`: http_status says which answer refuses it.
Result<RequestHead> read_request_head(std::string_view text);

}  // namespace rille::net
