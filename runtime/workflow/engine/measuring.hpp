// What the training loop of one call tells of its speed (`measured` in its progress; stdlib/tools/meter.lua), kept in
// the home with the machine that it ran on. Written when it is the first, when it rests on twice the steps, and at the
// end: the file is no log. Private to runtime/workflow/engine; loop thread only.
#pragma once

#include <string>

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/provider/catalogue/measured.hpp"

namespace rille::engine {

// $RILLE_HOME, by the folder that a run has in it.
std::string home_of(const std::string& run_folder);

class Measuring {
 public:
  // workload: its name, where the loop tells none.
  Measuring(std::string home, std::string run, std::string workload);
  ~Measuring();  // keeps what is left; a failure of that is not told
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

  // The machine that it runs on from here on. What the last one did is kept first.
  void on(const lease::Lease& lease);
  // Progress without a measurement, or with one that makes no sense, changes nothing. io: told once.
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
