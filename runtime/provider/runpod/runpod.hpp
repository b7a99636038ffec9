// The provider `runpod`: GPU pods, containers on RunPod's hosts in a data centre of one's choice, on demand and
// interruptible. docs/manual/providers/runpod.md has its settings.
#pragma once

#include <memory>

#include "runtime/provider/provider.hpp"
#include "runtime/provider/providers.hpp"

namespace rille::provider {

Result<std::unique_ptr<Provider>> make_runpod_provider(Setup setup);

}  // namespace rille::provider
