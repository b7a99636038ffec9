// SHA-256 and names derived from it. Names of leases, calls and tokens are derived, never random, so that a resumed
// run makes the same names; only a run's own id is random.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace rille {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {  // takes input in pieces; use one object from one thread only
 public:
  Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::string_view bytes);
  Digest finish();  // call at most once

 private:
  alignas(8) std::array<std::uint8_t, 112> state_;
};

Digest sha256(std::string_view bytes);
std::string to_hex(const Digest& digest);
std::string sha256_hex(std::string_view bytes);
bool is_sha256_hex(std::string_view text);  // 64 digits, in lower case

// A UUID (version 8: vendor-defined) from the parts, each length-prefixed so that ("a","bc") differs from ("ab","c").
std::string derive_uuid(std::initializer_list<std::string_view> parts);
// The first `chars` hexadecimal digits of the SHA-256 from which derive_uuid(parts) makes the UUID.
std::string derive_hex(std::initializer_list<std::string_view> parts, std::size_t chars);

// A new run id: date, time and six random letters, e.g. "20261121-020304-kqwmzt". Sorts by time.
std::string new_run_id(std::int64_t wall_us);
// `n` random bytes from getrandom(2), written as hexadecimal digits.
std::string random_hex(std::size_t n);

}  // namespace rille
