// The order of samples is computed from a key and not stored, so that a data set's position is one number.
#pragma once

#include <cstdint>

namespace rille::data {

// Mixes the bits of a number: SplitMix64's finaliser (Steele, Lea and Flood, 2014).
std::uint64_t mixed(std::uint64_t x);
// The key that determines the order of samples in one epoch.
inline std::uint64_t order_key(std::uint64_t seed, std::uint64_t epoch) { return mixed(mixed(seed) ^ epoch); }

// A permutation of [0, n) that is computed, not stored: a Feistel network on [0, 2^(2h)), the smallest such range
// with 2^(2h) >= n. The network is applied repeatedly until the result is below n, at most four times on average
// (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
class Permutation {
 public:
  Permutation(std::uint64_t n, std::uint64_t key);
  std::uint64_t operator()(std::uint64_t i) const;  // i must be less than n
  std::uint64_t size() const { return n_; }

 private:
  std::uint64_t n_, key_, half_mask_;
  int half_bits_;
};

}  // namespace rille::data
