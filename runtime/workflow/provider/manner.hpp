// Manner: constants of a provider, looked up by the provider's name without constructing the provider. Each driver
// defines its own in its header; providers.cpp collects them. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/workflow/provider/reach.hpp"

namespace rille {
struct NoticeSpec;
}

namespace rille::provider {

// A provider's error code for which reach_of() (reach.hpp) does not decide by the error's kind.
struct FarRefusal {
  std::string_view code;
  Reach reach;
};

struct Manner {
  // true: a cached list of offers serves only the identical query (catalogue/cache.hpp), because the provider lists
  // only the nearest matches, or sizes its machines to the query.
  bool narrow = false;
  // Environment variables that select region, identity and account. The contents of files that they name, or of files
  // in HOME, are not considered.
  std::span<const char* const> variables = {};
  std::span<const FarRefusal> refusals = {};
  // The options of rent_options.hpp that the provider supports.
  std::span<const char* const> options = {};
  // Describes how a spot machine learns of its preemption; `metadata`: base URL of the cloud's metadata service.
  NoticeSpec (*notice)(const std::string& metadata) = nullptr;
  // For how long `rille offers` skips a region after it was unreachable, because the timeout is long; 0: never skips.
  std::int64_t silence_ms = 0;
  // Environment variables that hold secrets; programs that run on a machine do not get them.
  std::span<const char* const> secrets = {};
  bool volumes = false;  // its driver is a VolumeSeller (volumes.hpp)
};

// The Manner of that provider. An unknown name, such as a test's provider, gets the defaults.
const Manner& manner_of(std::string_view provider);

// Manner::secrets of all providers.
std::vector<std::string> secret_variables();

}  // namespace rille::provider
