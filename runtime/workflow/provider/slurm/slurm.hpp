// The provider `slurm`: a rent is a job whose batch script keeps the allocation and starts the agent; the channel is
// `srun --overlap` into that job. Slurm's commands are run here, or where `via` leads (a login node over ssh).
// It has no tokens: a job bears its tag as name and comment. See docs/manual/providers/slurm.md.
#pragma once

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// config: what is wrong with the settings.
Result<std::unique_ptr<Provider>> make_slurm_provider(Setup setup);

inline constexpr const char* slurm_options[] = {"reservation", "qos"};
// Jobs are cut to the wish.
inline constexpr Manner slurm_manner{true, {}, {}, slurm_options};

}  // namespace rille::provider
