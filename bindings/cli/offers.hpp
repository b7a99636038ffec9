// The arguments of `rille offers`; offers_command.cpp implements the command.
#pragma once

#include <string>
#include <vector>

#include "bindings/cli/app.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::cli {

struct OffersArguments {
  std::vector<std::string> gpu;  // an offer must have one of these GPUs; empty: any GPU
  std::string gpu_memory, gpu_vendor, disk_kind, memory, interconnect, rank, max_age = "10m", timeout;
  // a rate is "CNY=0.14" (dollars per unit), a token speed "H100=9500" (tokens per second)
  std::vector<std::string> providers, regions, compliance, rates, tokens;
  double max_price = -1, network_gbps = 0;  // max_price in dollars per hour, -1: no limit
  int count = 0, vcpus = 0;
  std::size_t limit = 100;  // number of rows shown; 0: all rows
  std::string workload;
  bool estimated = false, measured = false;
  bool spot = false, refresh = false, history = false, reserved = false;
  std::string since = "7d";  // how far back --history goes
};

// `rille offers --measured`: prints measured training speeds of one workload; "": of all workloads. Defined in
// offers_measured.cpp.
Exit print_measured(App& app, const std::string& workload);
// `rille offers --history`: prints past spot prices. Defined in history_command.cpp.
Exit print_history(App& app, const OffersArguments& arguments);

}  // namespace rille::cli
