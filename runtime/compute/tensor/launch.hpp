// Launching a user's kernel on tensors. A launch is a node in program order: `const` pointers are read, others are read
// and written. It is never removed, and runs when its place has come: with the next read, or after launches_pending.
// On a stream it is ordered with whatever else uses its tensors (order.hpp), and with nothing else.
//
// Errors at once: invalid, naming the kernel, its argument, the type that it has and what was given. Errors of the
// kernel itself (checked mode, assert) come with the next read, kind device. Threads: the graph's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/device/kernel.hpp"
#include "runtime/compute/device/stream.hpp"
#include "runtime/compute/tensor/graph.hpp"

namespace rille::tensor {

constexpr std::size_t launches_pending = 64;  // more than this are sent to the lane

// What one parameter gets. A parameter by value: its bytes. A pointer: a tensor, or neither: null.
struct LaunchValue {
  Tensor tensor;
  std::size_t bytes = 0;  // of `value` that are set; 0 for a pointer
  alignas(16) std::byte value[32] = {};
};

struct Launching {
  std::shared_ptr<const device::Kernel> kernel;
  device::LaunchShape shape;
  std::string where;  // of the launch in the script, for errors; may be empty
  // Gets what the kernel prints, on the lane; may be null.
  std::shared_ptr<const std::function<void(std::string)>> say;
  std::shared_ptr<device::Stream> stream;  // null: the device's own order
};

// `what` is kept until the launch has run; a bound kernel gives the same one each time.
Result<void> launch(Graph& g, const std::shared_ptr<const Launching>& what, const std::vector<LaunchValue>& values);

// Can this tensor be given for that parameter? "" or what it should be: "an f32 tensor".
std::string wanted_for(const rille_abi::Parameter& parameter, DType dtype);

}  // namespace rille::tensor
