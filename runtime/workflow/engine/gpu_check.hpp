// Checks that a rented machine has as many GPU device files as its offer promised. Without the GPUs, a call would run
// on the CPU or fail with an unclear error, at the price of a GPU machine. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/workflow/lease/manager.hpp"

namespace rille::engine {

// The GPU device files that the agent counted on its machine.
struct GpusSeen {
  std::int64_t count = 0;
  bool each = true;  // true: one device file per card; false: one for all cards (AMD's driver, WSL)
};

// Returns nullopt if the machine has its GPUs, otherwise a `device` error, code gpus_missing, that names the machine,
// the offer and the count. One file is enough if it may stand for several GPUs (one file for all cards, or slices).
std::optional<Error> gpus_missing(const lease::Lease& lease, GpusSeen seen);

}  // namespace rille::engine
