// Which host names are this machine itself, so that data sent to them crosses no network. Any thread.
#pragma once

#include <string_view>

namespace rille::net {

// "localhost", "::1", "[::1]" and every IPv4 address that begins with 127. A name such as "127.example.org" is not.
bool is_loopback_host(std::string_view host);

}  // namespace rille::net
