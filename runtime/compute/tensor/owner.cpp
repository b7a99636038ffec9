#include "runtime/compute/tensor/owner.hpp"

#include "runtime/compute/device/owner.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

void own(const Tensor& t, const char* owner) { t.impl()->storage->owner = owner; }

void own_unowned(const Tensor& t, const char* owner) {
  auto& now = t.impl()->storage->owner;
  if (!now) now = owner;
}

const char* owner_of_copy(const Tensor& t) {
  const char* const owner = t.impl()->storage->owner;
  return owner == of_gradients || owner == of_activations ? nullptr : owner;
}

const char* owner_here(const Graph& g, const std::string& what) {
  const std::string where = g.where();
  return device::interned(where == "?" || where.empty() ? what : what + " at " + where);
}

}  // namespace rille::tensor
