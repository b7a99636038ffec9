#include "runtime/compute/data/permutation.hpp"

#include <bit>

namespace rille::data {

namespace {
constexpr int feistel_rounds = 6;
}

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

Permutation::Permutation(std::uint64_t n, std::uint64_t key) : n_(n), key_(key) {
  half_bits_ = (static_cast<int>(std::bit_width(n > 0 ? n - 1 : 0)) + 1) / 2;
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
}

std::uint64_t Permutation::operator()(std::uint64_t i) const {
  do {
    std::uint64_t left = i >> half_bits_, right = i & half_mask_;
    for (int round = 0; round < feistel_rounds; ++round) {
      const std::uint64_t next = left ^ (mixed(right ^ mixed(key_ + static_cast<std::uint64_t>(round))) & half_mask_);
      left = right, right = next;
    }
    i = left << half_bits_ | right;
  } while (i >= n_);
  return i;
}

}  // namespace rille::data
