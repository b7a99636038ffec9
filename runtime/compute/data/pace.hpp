// Lets the caller end a long loop over data: a script's limits of time and its cancel must reach it.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/core/base/use.hpp"

namespace rille::data {

// Called now and then. It may throw, which ends the loop; a position that the loop would have moved stays where it was.
// Empty: the loop runs to its end.
using Look = std::function<void()>;
using rille::Room;

struct Asked {
  Look look;
  Room room;
  std::function<void()> over;  // what room gave is free again: called between the pieces of a long work
  void looks() const {
    if (look) look();
  }
  Result<> needs(std::size_t bytes) const { return room ? room(static_cast<std::int64_t>(bytes)) : success(); }
};

class Pace {
 public:
  static constexpr std::uint64_t bytes = 256 << 10;  // between two looks
  explicit Pace(const Look& look) : look_(look) {}
  // A row or line counts by itself, too, since it may have no bytes.
  void did(std::uint64_t bytes_done) {
    done_ += bytes_done + 64;
    if (done_ < bytes || !look_) return;
    done_ = 0;
    look_();
  }

 private:
  const Look& look_;
  std::uint64_t done_ = 0;
};

}  // namespace rille::data
