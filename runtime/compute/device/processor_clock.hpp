// ProcessorClock: the processor time of a lane's thread and its OpenMP team. Made on the lane; read by any thread while
// the lane exists.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <vector>

namespace rille::device {

class ProcessorClock {
  struct Others;  // the processes that compute for one lane

 public:
  static ProcessorClock of_team();  // call on the lane
  std::int64_t ns() const;
  int threads() const { return int(clocks_.size()); }
  // The clocks of this thread's team count the time of a process that has ended.
  static void add(std::int64_t ns);

  // While it exists, the clocks of this thread's team count another process as well.
  class Also {
   public:
    // `counted_ns`: the part of the process's time that has been counted already.
    Also(clockid_t process, std::int64_t& counted_ns);
    ~Also();
    Also(const Also&) = delete;
    // counts the process's time so far; call before the process ends, because its time cannot be read afterwards
    void look();

   private:
    const std::shared_ptr<Others> others_;
    std::int64_t& counted_ns_;
  };

 private:
  std::vector<clockid_t> clocks_;
  std::shared_ptr<Others> others_;
};

}  // namespace rille::device
