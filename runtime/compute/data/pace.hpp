// Lets the caller end a long loop over data, so that a script's time limits and its cancel take effect.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/core/base/use.hpp"

namespace rille::data {

// Called regularly. May throw, which ends the loop; then the loop's position does not move. Empty: the loop runs to its
// end.
using Look = std::function<void()>;
using rille::Room;

struct Asked {
  Look look;
  Room room;
  std::function<void()> over;  // the memory that `room` granted is free again: called between the pieces of a long job
  void looks() const {
    if (look) look();
  }
  Result<> needs(std::size_t bytes) const { return room ? room(static_cast<std::int64_t>(bytes)) : success(); }
};

class Pace {
 public:
  static constexpr std::uint64_t bytes = 256 << 10;  // between two calls of look
  explicit Pace(const Look& look) : look_(look) {}
  // Call for each row or line. Adds 64 bytes to each, because it may be empty.
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
