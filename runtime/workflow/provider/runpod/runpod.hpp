// The provider `runpod`: GPU pods (containers) in RunPod's data centers, on demand and interruptible. Its settings are
// described in docs/manual/providers/runpod.md.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/provider.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

Result<std::unique_ptr<Provider>> make_runpod_provider(Setup setup);

inline constexpr const char* runpod_variables[] = {"RUNPOD_API_KEY"};
inline constexpr FarRefusal runpod_refusals[] = {{"no-money", Reach::account}, {"402", Reach::account}};
inline constexpr const char* runpod_options[] = {"image"};
// `true` is Manner::narrow: offers are sized to the query, so an answer serves no other query.
inline constexpr Manner runpod_manner{
    true, runpod_variables, runpod_refusals, runpod_options, nullptr, 0, runpod_variables, true};

}  // namespace rille::provider
