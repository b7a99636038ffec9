// Tensor: a cheap, counted handle to a lazy array. Making one records what to compute; nothing runs until a
// value is read (Graph::read) or the graph is flushed. Copying a handle shares it; views (reshape, permute,
// narrow, ...) share memory.
//
// Ownership: a handle keeps its Graph, its storage and, while gradients are recorded, the values that its gradient rule
// needs. Threads: make, use and drop handles on the thread that owns the Graph (the loop); only a read's callback runs
// on the lane. Dimensions and positions count from 0, -1 is the last; the Lua binding translates.
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

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}
  explicit operator bool() const { return impl_ != nullptr; }  // operations refuse an empty handle
  bool is(const Tensor& other) const { return impl_ == other.impl_; }

  const Dims& shape() const;
  const Dims& strides() const;  // in elements
  int rank() const { return shape().n; }
  std::int64_t size(int dim) const;  // dim may be negative; must be in range
  std::int64_t count() const { return shape().count(); }
  std::size_t size_bytes() const;  // count * element size: for the garbage collector's accounting
  DType dtype() const;
  const std::shared_ptr<device::Device>& device() const;
  Graph& graph() const;
  bool is_contiguous() const;
  bool is_leaf() const;  // not the result of a recorded operation
  // "f32[2, 3] cpu, requires grad, pending"; never computes.
  std::string describe() const;

  bool requires_grad() const;
  // state: not a leaf of a floating type.
  Result<void> set_requires_grad(bool on);
  void free();                                // releases it: compiled functions that used it are recorded again
  Tensor grad() const;                        // empty when there is none
  Result<void> set_grad(const Tensor& grad);  // an empty handle clears; invalid: another shape or type
  Tensor detach() const;                      // the same memory, without history
  std::uint64_t version() const;              // counts the writes to its memory

  const std::shared_ptr<TensorImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<TensorImpl> impl_;
};

std::string to_string(const Dims& dims);                         // "[2, 3]"
Result<Dims> make_dims(const std::vector<std::int64_t>& sizes);  // invalid: negative, or more than 8 dimensions

}  // namespace rille::tensor
