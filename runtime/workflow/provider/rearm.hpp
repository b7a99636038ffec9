// Rearmed: a provider that can change the expiry of a machine that it ends itself (DeadMan::provider).
#pragma once

#include <string>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

class Rearmed {
 public:
  virtual ~Rearmed() = default;
  // As CreateRequest::expires_wall_us, for a live machine. is_lack: not supported.
  virtual Async<> set_end(std::string id, std::int64_t expires_wall_us, CancelToken token) = 0;
};

}  // namespace rille::provider
