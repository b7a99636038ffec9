// Records in the home the training speed that one call reports (`measured` in its progress; stdlib/tools/meter.lua),
// with the machine type. To keep the file small, a measurement is written only the first time, when the number of
// steps has doubled since the last write, and at the end. Private to runtime/workflow/engine; loop thread only.
#pragma once

#include <string>

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/provider/catalogue/measured.hpp"

namespace rille::engine {

// Returns $RILLE_HOME, given the folder of a run: $RILLE_HOME/runs/<id>.
std::string home_of(const std::string& run_folder);

class Measuring {
 public:
  // workload: the workload's name, used if the call's training loop reports none.
  Measuring(std::string home, std::string run, std::string workload);
  ~Measuring();  // writes the last measurement; ignores failures
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

  // Sets the machine for later measurements; first writes the last measurement of the previous machine.
  void on(const lease::Lease& lease);
  // Takes a call's progress; ignores it without a valid measurement. Error `io`: only the first failed write.
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
