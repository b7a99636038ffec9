// Whether a machine shows the GPUs that it was rented with. A call that found none there would run on the processor, or
// fail in its own words, at a GPU's price. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/workflow/lease/manager.hpp"

namespace rille::engine {

// As the agent tells: device files. AMD's driver and WSL's have one for all cards.
struct GpusSeen {
  std::int64_t count = 0;
  bool each = true;  // one for each card
};

// Null: it shows them. device, code gpus_missing: names the machine, the offer, and what was seen. Fewer than there
// should be is none too few where a file may stand for several of the offer's GPUs, as slices of one card.
std::optional<Error> gpus_missing(const lease::Lease& lease, GpusSeen seen);

}  // namespace rille::engine
