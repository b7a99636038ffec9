#include "runtime/core/net/loopback.hpp"

#include <arpa/inet.h>

#include <string>

namespace rille::net {

bool is_loopback_host(std::string_view host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, std::string(host).c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return host == "localhost" || host == "::1" || host == "[::1]";
}

}  // namespace rille::net
