// Timing: when a schedule is due, at an interval or by a cron line in UTC. A value; reads no clock.
//   "every 6h", "90m"        an interval of at least a second, counted from the schedule's creation
//   "0 3 * * 1-5"            minute hour day-of-month month day-of-week; * , - / and names (mon, jan); Sunday is 0 or
//                            7. If both day fields are restricted, a day that matches one of them is due, as in cron.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::engine {

class Timing {
 public:
  // Fails with `invalid` if the text is not a timing, or if it never comes due (30 February).
  static Result<Timing> parse(std::string_view text);
  // The first due instant after `after_us`, in whole seconds. `begin_us`: the time from which intervals are counted.
  std::int64_t next_us(std::int64_t after_us, std::int64_t begin_us) const;

 private:
  bool due_on(std::int64_t day) const;  // `day`: days since 1970-01-01

  std::int64_t every_us_ = 0;  // 0: use the cron fields
  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;     // allowed days of the month, 1 to 31
  std::bitset<13> months_;   // allowed months, 1 to 12
  std::bitset<8> weekdays_;  // allowed weekdays, 0 (Sunday) to 6
  bool any_day_ = true, any_weekday_ = true;
};

}  // namespace rille::engine
