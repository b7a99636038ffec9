// The provider `runpod`: GPU pods, containers on RunPod's hosts in a data centre of one's choice, on demand and
// interruptible. docs/manual/providers/runpod.md has its settings.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/provider.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

Result<std::unique_ptr<Provider>> make_runpod_provider(Setup setup);

inline constexpr const char* runpod_variables[] = {"RUNPOD_API_KEY"};
inline constexpr FarRefusal runpod_refusals[] = {{"no-money", Reach::account}, {"402", Reach::account}};
// Pods are cut to the wish.
inline constexpr const char* runpod_options[] = {"image"};
inline constexpr Manner runpod_manner{true, runpod_variables, runpod_refusals, runpod_options, nullptr,
                                      0,    runpod_variables};

}  // namespace rille::provider
