// Manner: constants of a provider that are needed by name, without an instance. Each driver defines its own in its
// header; providers.cpp collects them. Any thread.
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

// An error code whose reach differs from that of its kind (reach.hpp). The driver's table of meanings cites the
// sources.
struct FarRefusal {
  std::string_view code;
  Reach reach;
};

struct Manner {
  // A cached answer serves only the identical query (catalogue/cache.hpp): the provider lists the nearest matches only,
  // or sizes its machines to the query.
  bool narrow = false;
  // Environment variables that select region, identity and account. The contents of files that they name, or of files
  // in HOME, are not considered.
  std::span<const char* const> variables = {};
  std::span<const FarRefusal> refusals = {};
  // The options of rent_options.hpp that it supports.
  std::span<const char* const> options = {};
  // How its spot machines are notified of preemption, given the base URL of the metadata service.
  NoticeSpec (*notice)(const std::string& metadata) = nullptr;
  // How long `rille offers` does not retry an unreachable region, because the timeout is long; 0: it retries.
  std::int64_t silence_ms = 0;
  // Environment variables that hold secrets: withheld from the programs of a machine.
  std::span<const char* const> secrets = {};
};

// Of an unknown provider, such as a test's: the defaults.
const Manner& manner_of(std::string_view provider);

// Manner::secrets of all providers.
std::vector<std::string> secret_variables();

}  // namespace rille::provider
