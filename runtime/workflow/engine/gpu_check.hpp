// Checks that a machine shows the GPUs it was rented with. Without them a call would run on the CPU or fail in its own
// words, at a GPU's price. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/workflow/lease/manager.hpp"

namespace rille::engine {

// Device files that the agent counted. AMD's driver and WSL have one for all cards.
struct GpusSeen {
  std::int64_t count = 0;
  bool each = true;  // one for each card
};

// nullopt: it shows them. device, code gpus_missing: names the machine, the offer and the count. If one file may stand
// for several GPUs (slices of one card), one is enough.
std::optional<Error> gpus_missing(const lease::Lease& lease, GpusSeen seen);

}  // namespace rille::engine
