// Rearmed: a provider that can set its own switch of a machine (DeadMan::provider) to another instant.
#pragma once

#include <string>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

class Rearmed {
 public:
  virtual ~Rearmed() = default;
  // As CreateRequest::expires_wall_us, of a machine that lives. is_lack: this provider cannot.
  virtual Async<> set_end(std::string id, std::int64_t expires_wall_us, CancelToken token) = 0;
};

}  // namespace rille::provider
