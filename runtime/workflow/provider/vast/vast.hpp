// The provider `vast`: containers on hosts of Vast.ai's market, on demand and interruptible. Its settings are described
// in docs/manual/providers/vast.md.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/provider.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

Result<std::unique_ptr<Provider>> make_vast_provider(Setup setup);

inline constexpr const char* vast_variables[] = {"VAST_API_KEY"};
inline constexpr FarRefusal vast_refusals[] = {{"insufficient_credit", Reach::account}};
inline constexpr const char* vast_options[] = {"image"};
// `true` is Manner::narrow: Vast returns only the 1000 cheapest matches, so an answer serves no other query.
inline constexpr Manner vast_manner{true, vast_variables, vast_refusals, vast_options, nullptr, 0, vast_variables};

}  // namespace rille::provider
