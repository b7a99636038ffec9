// The provider `slurm`: a machine is a job whose batch script holds the allocation and starts the agent; the channel is
// `srun --overlap` into that job. Slurm's commands run locally or through `via` (a login node over ssh). Slurm has no
// create tokens; a job is found again by the tag, which is the job's name and comment. See
// docs/manual/providers/slurm.md.
#pragma once

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// config: a wrong setting.
Result<std::unique_ptr<Provider>> make_slurm_provider(Setup setup);

inline constexpr const char* slurm_options[] = {"reservation", "qos"};
// Manner::narrow is true because jobs are sized to the query.
inline constexpr Manner slurm_manner{true, {}, {}, slurm_options};

}  // namespace rille::provider
