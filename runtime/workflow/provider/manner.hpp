// Manner: what must be known of a provider before it is made, and by its name alone: a row that each driver fills in
// its own header, and providers.cpp gathers. Plain constants; any thread.
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

// Where a refusal reaches farther, or less far, than its kind says (reach.hpp). The driver's table of meanings has the
// codes' sources.
struct FarRefusal {
  std::string_view code;
  Reach reach;
};

struct Manner {
  // Its answer to a question serves the same question only (catalogue/cache.hpp): it lists what is nearest to it, or
  // cuts its machines to the wish.
  bool narrow = false;
  // What of the environment says where, as whom and for which account it asks, beside its settings. What the files say
  // that these name, or that lie in HOME, is not looked at.
  std::span<const char* const> variables = {};
  std::span<const FarRefusal> refusals = {};
  // What a rent may say to it alone, by the names of rent_options.hpp.
  std::span<const char* const> options = {};
  // Where its spot machines ask whether they will be taken away, beneath that address of its metadata service.
  NoticeSpec (*notice)(const std::string& metadata) = nullptr;
  // How long `rille offers` does not ask again for what was not reached, since asking in vain takes long; 0: it does.
  std::int64_t silence_ms = 0;
  // What of the environment is a key, or goes with one: no program of a script's machine gets it.
  std::span<const char* const> secrets = {};
};

// Of a provider that nobody knows, as a test's: none of these.
const Manner& manner_of(std::string_view provider);

// Of all providers.
std::vector<std::string> secret_variables();

}  // namespace rille::provider
