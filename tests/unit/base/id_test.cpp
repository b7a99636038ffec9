#include "runtime/core/base/id.hpp"

#include <catch2/catch.hpp>

using namespace rille;

TEST_CASE("the digits of a SHA-256 are 64 hexadecimal ones in lower case") {
  const std::string digest = sha256_hex("x");
  CHECK(is_sha256_hex(digest));
  for (const std::string& bad : {std::string(), digest.substr(1), digest + "0", "G" + digest.substr(1),
                                 "A" + digest.substr(1), std::string(63, '0') + "/"})
    CHECK_FALSE(is_sha256_hex(bad));
}
