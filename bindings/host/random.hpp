// The generator behind math.random: xoshiro256** (Blackman and Vigna 2018, prng.di.unimi.it) seeded by splitmix64. Each
// fiber has a generator, so that a replay draws the same numbers whatever other fibers do.
#pragma once

#include <cstdint>

namespace rille::host {

class Random {
 public:
  explicit Random(std::uint64_t seed = 0) { reseed(seed); }
  void reseed(std::uint64_t seed) {
    for (std::uint64_t& word : s_) {
      std::uint64_t z = (seed += 0x9e3779b97f4a7c15ULL);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
      word = z ^ (z >> 31);
    }
  }
  std::uint64_t next() {
    std::uint64_t result = rotate(s_[1] * 5, 7) * 9, t = s_[1] << 17;
    s_[2] ^= s_[0];
    s_[3] ^= s_[1];
    s_[1] ^= s_[2];
    s_[0] ^= s_[3];
    s_[2] ^= t;
    s_[3] = rotate(s_[3], 45);
    return result;
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // uniform in [0, 1)
  // Uniform in [0, n), without bias (Lemire 2019, by rejection).
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t threshold = (0 - n) % n;
    while (true) {
      unsigned __int128 m = static_cast<unsigned __int128>(next()) * n;
      if (static_cast<std::uint64_t>(m) >= threshold) return static_cast<std::uint64_t>(m >> 64);
    }
  }

 private:
  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::uint64_t s_[4];
};

}  // namespace rille::host
