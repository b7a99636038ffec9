// ProcessorClock: the processor time of a lane's thread and its OpenMP team. Made on the lane; read by any thread while
// the lane exists.
#pragma once

#include <cstdint>
#include <ctime>
#include <vector>

namespace rille::device {

class ProcessorClock {
 public:
  static ProcessorClock of_team();  // on the lane
  std::int64_t ns() const;
  int threads() const { return int(clocks_.size()); }

 private:
  std::vector<clockid_t> clocks_;
};

}  // namespace rille::device
