// Records the training speed that one call reports (`measured` in its progress; stdlib/tools/meter.lua) in the home,
// with the machine type. Written for the first measurement, whenever its number of steps has doubled, and at the end:
// the file is not a log. Private to runtime/workflow/engine; loop thread only.
#pragma once

#include <string>

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/provider/catalogue/measured.hpp"

namespace rille::engine {

// $RILLE_HOME, from a run's folder in it.
std::string home_of(const std::string& run_folder);

class Measuring {
 public:
  // workload: the name used if the loop reports none.
  Measuring(std::string home, std::string run, std::string workload);
  ~Measuring();  // writes the last measurement; ignores failures
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

  // Sets the machine for later measurements, after saving those of the last one.
  void on(const lease::Lease& lease);
  // Ignores progress without a valid measurement. io: reported once.
  Result<> hear(const Value& progress, std::int64_t now_us);

 private:
  Result<> settle();

  std::string home_;
  provider::Measurement newest_;
  provider::Offer machine_;
  std::int64_t kept_steps_ = 0;
  bool failed_ = false;
};

}  // namespace rille::engine
