// Rearmed: a provider that ends expired machines (DeadMan::provider) and can change the expiry of a live machine.
#pragma once

#include <string>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

class Rearmed {
 public:
  virtual ~Rearmed() = default;
  // Sets a live machine's expiry, as CreateRequest::expires_wall_us. If unsupported, is_lack() is true for the error.
  virtual Async<> set_end(std::string id, std::int64_t expires_wall_us, CancelToken token) = 0;
};

}  // namespace rille::provider
