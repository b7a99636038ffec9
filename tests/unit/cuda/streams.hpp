// What the tests of streams, of events and of kernels share: users' kernels for the stand-in card, and tensors of one
// number.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <future>

#include "runtime/compute/tensor/launch.hpp"
#include "runtime/compute/tensor/streams.hpp"
#include "standin.hpp"

namespace rille::tensor {

constexpr int length = 96;

// Where the kernel is kept for this process: what the stand-in compiled lies in a file of another place.
struct KernelFolder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("rille-streams-" + std::to_string(::getpid()));
  ~KernelFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

inline device::KernelOptions for_the_card() {
  static const KernelFolder folder;
  device::KernelOptions options;
  options.arch = "sm_90";
  options.cache = folder.path.string();
  return options;
}

// y += a * x, for each launch by a kernel of its own device: a loaded kernel keeps its device.
class Adder {
 public:
  explicit Adder(Graph& g) : graph_(g) {
    kernel_ =
        get(device::Kernel::compile("__global__ void add_to(int n, float a, const float* x, float* y) {\n"
                                    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                    "  if (i < n) y[i] = a * x[i] + y[i];\n}\n",
                                    for_the_card()));
  }
  void operator()(const StreamPtr& stream, double a, const Tensor& x, const Tensor& y) const {
    get(tried(stream, a, x, y));
  }
  Result<void> tried(const StreamPtr& stream, double a, const Tensor& x, const Tensor& y) const {
    auto what = std::make_shared<Launching>();
    what->kernel = kernel_;
    what->shape.grid[0] = 3;
    what->shape.block[0] = 32;
    what->stream = stream;
    std::vector<LaunchValue> values(4);
    device::put_number(rille_abi::i32, values[0].value, length);
    device::put_number(rille_abi::f32, values[1].value, a);
    values[2].tensor = x;
    values[3].tensor = y;
    return launch(graph_, what, values);
  }

 private:
  Graph& graph_;
  std::shared_ptr<device::Kernel> kernel_;
};

inline Tensor whole(Graph& g, double value) { return get(full(g, dims({length}), value, DType::f32)); }
inline Tensor batch(Graph& g, int i) {
  return get(from_numbers(g, dims({length}), DType::f32, std::vector<double>(length, double(i % 7 + 1))));
}
inline void settle_lane(Graph& g) {
  g.flush();
  while (g.depth()) std::this_thread::yield();
}
inline std::vector<std::vector<double>> all(const std::vector<Tensor>& list) {
  std::vector<std::vector<double>> out;
  for (const auto& t : list) out.push_back(numbers(t));
  return out;
}

inline bool is_done(const std::shared_ptr<Event>& e) { return get(e->done()); }

inline Result<void> waited_for(Graph& g, const std::shared_ptr<Event>& e) {
  const auto done = std::make_shared<std::promise<Result<void>>>();
  when_done(g, {e}, [done](Result<void> r) { done->set_value(std::move(r)); });
  return done->get_future().get();
}
inline void wait_for(Graph& g, const std::shared_ptr<Event>& e) { get(waited_for(g, e)); }

}  // namespace rille::tensor
