// Graph: the list of operations recorded and not yet run. There is one per runtime, and it owns their order: operations
// run in the order in which they were recorded, so a write (add_, an optimiser's step) follows every earlier reader and
// precedes every later one. Operations whose results are no longer referenced are dropped without running.
//
// Threads: all calls on one thread (the loop), except the callbacks of read() and synchronize(), which run on the lane
// thread and must only hand the result over. Errors of kernels (a label out of range, out of memory) are returned by
// read(). After a memory error the unfinished work is kept: drop handles, collect, and read again to resume.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/compute/device/cpu.hpp"
#include "runtime/compute/tensor/profile.hpp"
#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

// The bytes of a tensor, contiguous, row-major.
struct HostData {
  DType dtype = DType::f32;
  Dims shape;
  std::vector<std::byte> bytes;
  double number(std::int64_t i) const;         // element i as a double (i64 beyond 2^53 loses digits)
  std::int64_t integer(std::int64_t i) const;  // element i truncated to an integer
};

// Position in the random sequence. Saved in checkpoints; set_random_state restores it.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;   // a compiled call advances it by one
  std::uint32_t index = 0;  // random operations since the step began
};

class Compiled;

class Graph : public std::enable_shared_from_this<Graph> {
 public:
  static constexpr std::size_t pending_limit = 10'000;  // more pending operations than this are flushed
  // invalid: no device.
  static Result<std::shared_ptr<Graph>> create(std::shared_ptr<device::Device> device);
  ~Graph();

  const std::shared_ptr<device::Device>& device() const { return device_; }

  // Evaluates everything pending and hands `done` the tensor's values, on the lane thread.
  // state: while tracing, or the tensor was made inside a compiled function and not returned.
  // `last_try`: operations without memory fail instead of being kept for another try.
  void read(const Tensor& t, std::function<void(Result<HostData>)> done, bool last_try = false);
  Result<HostData> read_blocking(const Tensor& t);  // waits: for tests and for programs without a loop
  // Copies the values to a device that this one can send to (Device::sends_to). Once `done` has been called, on the
  // lane thread, `to`'s graph may use the tensor. Fails as read() does, or with memory if the other device has none.
  Result<Tensor> send(const Tensor& t, Graph& to, std::function<void(Result<void>)> done, bool last_try = false);
  Result<double> item_blocking(const Tensor& t);  // invalid: more than one element
  // Sends what is pending to the lane. Returns at once; the next read or synchronize returns its errors.
  void flush();
  // Calls back when everything recorded so far has run, with the first error since the last report.
  void synchronize(std::function<void(Result<void>)> done);
  Result<void> synchronize_blocking();
  std::size_t pending() const;  // operations recorded and not yet sent
  std::size_t depth() const;    // jobs sent and not finished; above ~64, wait

  // Times each operation that runs from start to stop. stop waits for everything recorded so far.
  void profile_start();
  void profile_stop(std::function<void(Result<ProfileReport>)> done);

  // Random numbers. manual_seed restarts the sequence.
  void manual_seed(std::uint64_t seed);
  RandomState random_state() const { return random_; }
  void set_random_state(const RandomState& s) { random_ = s; }

  // How operations are recorded now. Belongs to the running code: save and restore it around a suspension of the fiber.
  struct Modes {
    bool grad_enabled = true;
    std::optional<DType> autocast;  // products and convolutions of f32 operands use this type
    bool tf32 = false;              // f32 products may be rounded to TF32 by a GPU
    // A batch in several parts: the gradients of all parts add up to the mean's gradient, and the work after backward
    // (clipping, the optimiser's step, averages) happens with the last part only. Parts count from 0.
    int part = 0, parts = 1;
    bool first_part() const { return part == 0; }
    bool last_part() const { return part + 1 == parts; }
  };
  const Modes& modes() const { return modes_; }
  void set_modes(const Modes& m) { modes_ = m; }
  bool grad_enabled() const { return modes_.grad_enabled; }
  void set_grad_enabled(bool on) { modes_.grad_enabled = on; }
  bool tracing() const;
  // While on, the output of each operation is checked: the first operation that makes a NaN fails with kind state, code
  // "not_a_number", its inputs and its position in the script. Compiled functions run unchecked. Slow.
  void set_check_numbers(bool on);
  bool checks_numbers() const;
  // Sets the source of script positions ("train.lua:12") for errors of operations in a compiled function.
  void set_where(std::function<std::string()> where) { where_ = std::move(where); }
  std::string where() const { return where_ ? where_() : std::string("?"); }

  struct Impl;  // the recording side: runtime/compute/tensor/record.hpp
  Impl& impl() { return *impl_; }

 private:
  explicit Graph(std::shared_ptr<device::Device> device);
  friend struct Impl;
  friend class Compiled;
  std::shared_ptr<device::Device> device_;
  std::unique_ptr<Impl> impl_;
  RandomState random_;
  Modes modes_;
  std::function<std::string()> where_;
};

// Turns grad mode off while an instance lives. For C++ callers; a binding uses set_grad_enabled.
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
