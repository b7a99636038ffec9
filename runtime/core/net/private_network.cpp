#include "runtime/core/net/private_network.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace rille::net {

namespace {
constexpr int port_min = 1024;

// Bridges of containers and virtual machines on this host: other machines have bridges with the same addresses.
bool is_bridge(std::string_view name) {
  return name.starts_with("docker") || name.starts_with("br-") || name.starts_with("veth") || name.starts_with("virbr");
}
}  // namespace

bool is_private_host(std::string_view host) {
  const std::string text(host);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    const std::uint32_t a = ntohl(v4.s_addr);
    return a >> 24 == 10 || a >> 20 == 0xac1 || a >> 16 == 0xc0a8 || a >> 22 == 0x191;
  }
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && (v6.s6_addr[0] & 0xfe) == 0xfc;
}

bool is_private_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (bracketed != (host.find(':') != std::string_view::npos)) return false;
  int port = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool whole = failed == std::errc() && end == digits.data() + digits.size();
  return whole && port >= port_min && port <= UINT16_MAX && is_private_host(host);
}

std::vector<std::string> private_hosts(std::size_t most) {
  std::vector<std::string> out;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return out;
  for (const ifaddrs* one = all; one && out.size() < most; one = one->ifa_next) {
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) || is_bridge(one->ifa_name)) continue;
    char text[INET6_ADDRSTRLEN] = {};
    const int family = one->ifa_addr->sa_family;
    const void* address = nullptr;
    if (family == AF_INET) address = &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    if (family == AF_INET6) address = &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
    if (!address || !inet_ntop(family, address, text, sizeof text) || !is_private_host(text)) continue;
    if (std::find(out.begin(), out.end(), text) == out.end()) out.emplace_back(text);
  }
  ::freeifaddrs(all);
  return out;
}

}  // namespace rille::net
