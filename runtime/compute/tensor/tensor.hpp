// Tensor: a counted handle to an array whose values are computed later. Making one records the operation; nothing runs
// until a value is read (Graph::read) or the graph is flushed. Copying a handle shares the array; views (reshape,
// permute, narrow, ...) share its memory.
//
// Ownership: a handle keeps its Graph and its storage alive and, while gradients are recorded, the values that its
// gradient rule needs. Threads: make, use and drop handles on the thread that owns the Graph (the event loop's); only
// the callback of a read runs on the lane thread. Dimensions and indices count from 0, -1 is the last; the Lua binding
// converts from 1.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/call.hpp"
#include "runtime/compute/device/device.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::tensor {

using kernels::Dims;
class Graph;
struct Storage;
struct GradFn;
struct TensorImpl;

constexpr std::size_t object_bytes = 1 << 10;  // memory counted for a tensor besides its values

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}
  explicit operator bool() const { return impl_ != nullptr; }  // false: an empty handle
  bool is(const Tensor& other) const { return impl_ == other.impl_; }

  const Dims& shape() const;
  const Dims& strides() const;  // strides, counted in elements
  int rank() const { return shape().n; }
  std::int64_t size(int dim) const;  // dim may be negative; must be in range
  std::int64_t count() const { return shape().count(); }
  std::size_t size_bytes() const;  // count * element size; the garbage collector uses it as the object's weight
  DType dtype() const;
  const std::shared_ptr<device::Device>& device() const;
  Graph& graph() const;
  bool is_contiguous() const;
  bool is_leaf() const;  // true: not the result of an operation recorded for gradients
  // For example "f32[2, 3] cpu, requires grad, pending"; never computes a value.
  std::string describe() const;

  bool requires_grad() const;
  // Error state: not a leaf of a floating type.
  Result<void> set_requires_grad(bool on);
  void free();                                // releases the memory; compiled functions that use it record again
  Tensor grad() const;                        // empty handle: no gradient
  Result<void> set_grad(const Tensor& grad);  // an empty handle clears it; error invalid: other shape or type
  Tensor detach() const;                      // shares the memory, without gradient history
  std::uint64_t version() const;              // counts the writes to the memory

  const std::shared_ptr<TensorImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<TensorImpl> impl_;
};

std::string to_string(const Dims& dims);  // for example "[2, 3]"
// Error invalid: a size < 0, or a product of sizes beyond 1e15. Every tensor has passed it, so products of its sizes
// fit.
Result<> check_dims(const Dims& dims);
Result<Dims> make_dims(const std::vector<std::int64_t>& sizes);  // error invalid: a size < 0, or more than 8 sizes

}  // namespace rille::tensor
