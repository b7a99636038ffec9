// Addresses of private networks, by which the machines of one run may reach each other. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rille::net {

// A numeric address of RFC 1918 (10/8, 172.16/12, 192.168/16), RFC 6598 (100.64/10) or RFC 4193 (fc00::/7).
bool is_private_host(std::string_view host);
// The same with a port that a program may choose: "10.0.0.1:4711", "[fd00::1]:4711".
bool is_private_address(std::string_view host_and_port);
// This machine's private addresses, of interfaces that are up, without those of container bridges; `most` at most.
std::vector<std::string> private_hosts(std::size_t most);

}  // namespace rille::net
