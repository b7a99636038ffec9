// The provider `vast`: containers on single hosts of Vast.ai's market, on demand and interruptible.
// docs/manual/providers/vast.md has its settings.
#pragma once

#include <memory>

#include "runtime/provider/provider.hpp"
#include "runtime/provider/providers.hpp"

namespace rille::provider {

Result<std::unique_ptr<Provider>> make_vast_provider(Setup setup);

}  // namespace rille::provider
