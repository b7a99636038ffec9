// Launches a user's kernel on tensors. A launch is a node in program order: tensors of `const` pointers are read, those
// of other pointers are read and written. A launch is never removed; it runs at the next read, or once more than
// launches_pending launches wait. A launch on a stream waits only for operations on the same tensors (order.hpp).
//
// Error invalid at once: names the kernel, the argument, its declared type and the value given. Errors inside the
// kernel (checked mode, assert) are returned by the next read, as kind device. Threads: the graph's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/device/kernel.hpp"
#include "runtime/compute/device/stream.hpp"
#include "runtime/compute/tensor/graph.hpp"

namespace rille::tensor {

constexpr std::size_t launches_pending = 64;  // beyond this many waiting launches, all are sent to the lane

// The value of one parameter: bytes for a parameter by value, a tensor for a pointer. An empty tensor is a null
// pointer.
struct LaunchValue {
  Tensor tensor;
  std::size_t bytes = 0;  // number of bytes of `value` in use; 0: the parameter is a pointer
  alignas(16) std::byte value[32] = {};
};

struct Launching {
  std::shared_ptr<const device::Kernel> kernel;
  device::LaunchShape shape;
  std::string where;  // script position of the launch, for error messages; may be empty
  // Called on the lane with what the kernel prints; may be null.
  std::shared_ptr<const std::function<void(std::string)>> say;
  std::shared_ptr<device::Stream> stream;  // null: the device's main stream
};

// `what` is kept until the launch has run, so a bound kernel can pass the same object each time.
Result<void> launch(Graph& g, const std::shared_ptr<const Launching>& what, const std::vector<LaunchValue>& values);

// "" if `parameter` accepts a tensor of `dtype`; else what it accepts, such as "an f32 tensor".
std::string wanted_for(const rille_abi::Parameter& parameter, DType dtype);

}  // namespace rille::tensor
