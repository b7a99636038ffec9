#include "runtime/core/base/work.hpp"

#include <utility>

namespace rille {

void Work::end(const Error& why) {
  const std::lock_guard lock(mutex_);
  Error e = why;
  e.message = "not computed: " + e.message;
  why_ = std::make_shared<const Error>(std::move(e));
  __atomic_add_fetch(&ends_, 1, __ATOMIC_RELEASE);
}

std::shared_ptr<const Error> Work::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

}  // namespace rille
