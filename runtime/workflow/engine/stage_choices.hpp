// The options of box:stage, read and checked. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::engine {

struct StageChoices {
  StageChoices() = default;
  std::string sha256;   // of a file; "": not checked
  bool mirror = false;  // remove what the source folder has no longer
  bool unpack = false;  // the source is an archive, whose files are wanted
  std::int64_t bytes_per_second_max = 0;
};
// Error `invalid` names the option.
Result<StageChoices> read_stage_choices(const Value& options);

}  // namespace rille::engine
