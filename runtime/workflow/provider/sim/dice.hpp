// Dice: random numbers as a pure function of seed, name and number, so that an additional draw does not change the
// results of other draws.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

namespace rille::provider::sim {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(mix(seed + 0x9e3779b97f4a7c15ULL)) {}

  std::uint64_t bits(std::string_view what, std::uint64_t number = 0) const {
    std::uint64_t h = 0xcbf29ce484222325ULL ^ seed_;  // FNV-1a, then the finalizer of SplitMix64
    for (char c : what) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return mix(h ^ mix(number + 0x632be59bd9b4e019ULL));
  }
  double unit(std::string_view what, std::uint64_t number = 0) const {  // [0, 1)
    return static_cast<double>(bits(what, number) >> 11) * 0x1.0p-53;
  }
  bool chance(double probability, std::string_view what, std::uint64_t number = 0) const {
    return probability > 0 && unit(what, number) < probability;
  }
  std::int64_t between(std::int64_t least, std::int64_t most, std::string_view what, std::uint64_t number = 0) const {
    return least + static_cast<std::int64_t>(unit(what, number) * static_cast<double>(most - least + 1));
  }
  double exponential(double mean, std::string_view what, std::uint64_t number = 0) const {
    return -mean * std::log1p(-unit(what, number));
  }
  Dice of(std::string_view what) const { return Dice(bits(what)); }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  std::uint64_t seed_;
};

}  // namespace rille::provider::sim
