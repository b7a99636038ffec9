// The provider `slurm`: a machine is a job whose batch script holds the allocation and starts the agent; the channel is
// `srun --overlap` into that job. Slurm's commands run locally or through `via` (a login node over ssh).
// It has no tokens: the tag is the job's name and comment. See docs/manual/providers/slurm.md.
#pragma once

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// config: a wrong setting.
Result<std::unique_ptr<Provider>> make_slurm_provider(Setup setup);

inline constexpr const char* slurm_options[] = {"reservation", "qos"};
// narrow: jobs are sized to the query.
inline constexpr Manner slurm_manner{true, {}, {}, slurm_options};

}  // namespace rille::provider
