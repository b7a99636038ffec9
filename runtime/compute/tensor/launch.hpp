// Launches a user's kernel on tensors. A launch is a node in program order: `const` pointers are read, others are read
// and written. It is never removed, and runs in its turn: with the next read, or once more than launches_pending wait.
// A launch on a stream is ordered only with operations that use the same tensors (order.hpp).
//
// Errors at once: invalid, naming the kernel, the argument, its declared type and the value given. Errors of the kernel
// itself (checked mode, assert) are returned by the next read, kind device. Threads: the graph's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/device/kernel.hpp"
#include "runtime/compute/device/stream.hpp"
#include "runtime/compute/tensor/graph.hpp"

namespace rille::tensor {

constexpr std::size_t launches_pending = 64;  // beyond this many, all are sent to the lane

// The value of one parameter. By value: its bytes. A pointer: a tensor, or null if the tensor is empty.
struct LaunchValue {
  Tensor tensor;
  std::size_t bytes = 0;  // size of `value` in use; 0 for a pointer
  alignas(16) std::byte value[32] = {};
};

struct Launching {
  std::shared_ptr<const device::Kernel> kernel;
  device::LaunchShape shape;
  std::string where;  // script position of the launch, for errors; may be empty
  // Receives what the kernel prints, on the lane; may be null.
  std::shared_ptr<const std::function<void(std::string)>> say;
  std::shared_ptr<device::Stream> stream;  // null: the device's own order
};

// `what` is kept until the launch has run; a bound kernel passes the same object each time.
Result<void> launch(Graph& g, const std::shared_ptr<const Launching>& what, const std::vector<LaunchValue>& values);

// "" if `parameter` accepts a tensor of `dtype`, else the expected value: "an f32 tensor".
std::string wanted_for(const rille_abi::Parameter& parameter, DType dtype);

}  // namespace rille::tensor
