#include "runtime/compute/tensor/stops.hpp"

namespace rille::tensor {

void Stops::stop(const Error& why) {
  const std::lock_guard lock(mutex_);
  Error e = why;
  e.message = "not computed: " + e.message;
  why_ = std::make_shared<const Error>(std::move(e));
  __atomic_add_fetch(&count_, 1, __ATOMIC_RELEASE);
}

std::shared_ptr<const Error> Stops::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

}  // namespace rille::tensor
