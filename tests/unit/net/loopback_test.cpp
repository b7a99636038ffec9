#include "runtime/core/net/loopback.hpp"

#include <catch2/catch.hpp>

using rille::net::is_loopback_host;

TEST_CASE("a loopback host is a name or an address, not what begins like one") {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"}) CHECK(is_loopback_host(host));
  for (const char* host : {"", "127.example.org", "127.0.0.1.example.org", "localhost.example.org", "10.0.0.1",
                           "128.0.0.1", "::2", "0.0.0.0", "127.0.0.1:80"})
    CHECK_FALSE(is_loopback_host(host));
}
