// Graph: the list of operations recorded and not yet run, one per runtime. Operations run in the order in which they
// were recorded, so a write (add_, an optimiser's step) runs after every earlier reader and before every later one. An
// operation whose results are no longer referenced is dropped without running.
//
// Threads: all calls on one thread (the event loop's). The callbacks of read() and synchronize() run on the lane
// thread, which runs the device's operations; a callback must only pass the result on. Errors of kernels (a label out
// of range, out of memory) are returned by read(). After a memory error the unfinished operations are kept: drop
// handles, run the garbage collector, and read again to resume.
#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/compute/device/cpu.hpp"
#include "runtime/compute/tensor/profile.hpp"
#include "runtime/compute/tensor/tensor.hpp"
#include "runtime/core/base/work.hpp"

namespace rille::tensor {

// A tensor's values on the host, contiguous and row-major.
struct HostData {
  DType dtype = DType::f32;
  Dims shape;
  std::vector<std::byte> bytes;
  std::shared_ptr<const MemoryHeld> held = {};  // counts `bytes` in the run's memory; null: not counted
  double number(std::int64_t i) const;          // element i as a double; an i64 beyond 2^53 loses digits
  std::int64_t integer(std::int64_t i) const;   // element i truncated to an integer
};

// Position in the sequence of random numbers. Checkpoints save it; set_random_state restores it.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;   // advanced by one at each compiled call
  std::uint32_t index = 0;  // number of random operations since the step began
};

class Compiled;

class Graph : public std::enable_shared_from_this<Graph> {
 public:
  static constexpr std::size_t pending_limit = 10'000;  // beyond so many, pending operations are sent to the lane
  // Error invalid: no device.
  static Result<std::shared_ptr<Graph>> create(std::shared_ptr<device::Device> device);
  ~Graph();

  const std::shared_ptr<device::Device>& device() const { return device_; }

  // Runs everything pending and calls `done` with the tensor's values, on the lane thread.
  // Error state: the graph is tracing, or the tensor was made inside a compiled function and not returned.
  // `last_try`: an operation that gets no memory fails instead of being kept for another try.
  void read(const Tensor& t, std::function<void(Result<HostData>)> done, bool last_try = false);
  // As read, but for a look that no script asked for: an error of an earlier operation is left to the next read, and
  // operations that wait for memory are not tried again.
  void glance(const Tensor& t, std::function<void(Result<HostData>)> done);
  Result<HostData> read_blocking(const Tensor& t);  // blocks the thread: for tests and programs without an event loop
  // Copies the values to a device to which this one can send (Device::sends_to). Once `done` has been called, on the
  // lane thread, the graph `to` may use the tensor. Errors: as for read(); memory, if the target device has none.
  Result<Tensor> send(const Tensor& t, Graph& to, std::function<void(Result<void>)> done, bool last_try = false);
  // Blocks until the tensor has its values; returns the error of computing them.
  Result<void> compute_blocking(const Tensor& t);
  Result<double> item_blocking(const Tensor& t);  // error invalid: the tensor has more than one element
  // Sends the pending operations to the lane and returns at once; the next read or synchronize returns their errors.
  void flush();
  // Calls `done` when everything recorded so far has run, with the first error that was not yet reported.
  void synchronize(std::function<void(Result<void>)> done);
  Result<void> synchronize_blocking();
  // Operations recorded from now on belong to `work`. Work::end() makes the lane skip its recorded operations and break
  // off the running one.
  void set_work(std::shared_ptr<Work> work);
  const std::shared_ptr<Work>& work() const;
  std::size_t pending() const;  // operations recorded and not yet sent to the lane
  std::size_t depth() const;    // jobs sent to the lane and not finished; above about 64 callers should wait

  // Times each operation that runs between start and stop. profile_stop first waits for every recorded operation.
  void profile_start();
  void profile_stop(std::function<void(Result<ProfileReport>)> done);

  // Random numbers. manual_seed restarts the sequence from `seed`.
  void manual_seed(std::uint64_t seed);
  RandomState random_state() const { return random_; }
  void set_random_state(const RandomState& s) { random_ = s; }

  // How operations are recorded now. The modes belong to the running fiber: save and restore them when it is suspended.
  struct Modes {
    bool grad_enabled = true;
    std::optional<DType> autocast;  // type to which f32 operands of products and convolutions are cast; empty: no cast
    bool tf32 = false;              // a GPU may round the operands of f32 products to TF32
    // A batch in several parts: the gradients of the parts add up to the gradient of the batch's mean loss, and the
    // work after backward (clipping, the optimiser's step, averages) happens in the last part only. Parts count from 0.
    int part = 0, parts = 1;
    bool first_part() const { return part == 0; }
    bool last_part() const { return part + 1 == parts; }
  };
  const Modes& modes() const { return modes_; }
  void set_modes(const Modes& m) { modes_ = m; }
  bool grad_enabled() const { return modes_.grad_enabled; }
  void set_grad_enabled(bool on) { modes_.grad_enabled = on; }
  bool tracing() const;
  // While on, the outputs of each operation are checked: the first one that makes a NaN fails with error state, code
  // "not_a_number", naming its inputs and its position in the script. Compiled functions then run uncompiled. Slow.
  void set_check_numbers(bool on);
  bool checks_numbers() const;
  // `where` returns the script position ("train.lua:12"), for errors of operations in a compiled function.
  void set_where(std::function<std::string()> where) { where_ = std::move(where); }
  std::string where() const { return where_ ? where_() : std::string("?"); }
  // `look` is called every few milliseconds while a call blocks this thread; it may end the work.
  void set_look(std::function<void()> look) { look_ = std::move(look); }

  struct Impl;  // the graph's internals: runtime/compute/tensor/record.hpp
  Impl& impl() { return *impl_; }

 private:
  explicit Graph(std::shared_ptr<device::Device> device);
  template <class T>
  Result<T> wait(std::future<Result<T>> arrives) const;
  friend struct Impl;
  friend class Compiled;
  std::shared_ptr<device::Device> device_;
  std::unique_ptr<Impl> impl_;
  RandomState random_;
  Modes modes_;
  std::function<std::string()> where_;
  std::function<void()> look_;
};

// A tensor's values in memory, row-major. The memory stays valid while `whole` (and `copy`) live.
struct Viewed {
  void* data = nullptr;
  Tensor whole;                                  // the tensor, or a row-major copy of it
  std::shared_ptr<std::vector<std::byte>> copy;  // for a tensor on a GPU: its values in host memory; else null
};
// Blocks the thread until the values are computed, as read_blocking does.
Result<Viewed> view_blocking(const Tensor& t);

// Groups the updates recorded while it exists: all of them change their tensors, or none (Together in record.hpp).
class AllOrNone {
 public:
  // to_the_end: a cancelled run still completes the operations; for those that take about one pass over the tensors.
  AllOrNone(Graph& g, bool to_the_end);
  ~AllOrNone();
  AllOrNone(const AllOrNone&) = delete;
  AllOrNone& operator=(const AllOrNone&) = delete;

 private:
  Graph& graph_;
};

// Turns gradient recording off while an instance lives. For C++ callers; a binding uses set_grad_enabled.
class NoGrad {
 public:
  explicit NoGrad(Graph& g) : graph_(g), before_(g.grad_enabled()) { g.set_grad_enabled(false); }
  ~NoGrad() { graph_.set_grad_enabled(before_); }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Graph& graph_;
  bool before_;
};

}  // namespace rille::tensor
