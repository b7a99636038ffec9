// Graph: the list of operations that were asked for and have not run. One per runtime; it owns the order of
// things. Operations run in the order in which they were asked for, so a write (add_, an optimiser's step)
// follows every earlier reader and precedes every later one. What nobody holds any more is dropped without
// running.
//
// Threads: all calls on one thread (the loop), except the callbacks of read() and synchronize(), which come
// on the lane thread and must only hand the result over. Errors of kernels (a label out of range, out of
// memory) surface in read(). After a memory error the unfinished work is kept: drop handles, collect, and
// read again to go on from there.
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

// Where random numbers stand. Saved in checkpoints; `set` puts it back.
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
  // state: while tracing; or the tensor lived inside a compiled function.
  // `last_try`: work for which there is no memory fails, rather than being kept.
  void read(const Tensor& t, std::function<void(Result<HostData>)> done, bool last_try = false);
  Result<HostData> read_blocking(const Tensor& t);  // waits: for tests and for programs without a loop
  // The same values on a device to which this one sends (Device::sends_to). The tensor may be used at once by `to`'s
  // graph when `done` was called, on the lane thread. As read() fails, and memory of the other device.
  Result<Tensor> send(const Tensor& t, Graph& to, std::function<void(Result<void>)> done, bool last_try = false);
  Result<double> item_blocking(const Tensor& t);  // invalid: more than one element
  // Sends what is pending to the lane. Returns at once; errors wait for the next read or synchronize.
  void flush();
  // Calls back when everything asked for so far has run, with the first error since the last report.
  void synchronize(std::function<void(Result<void>)> done);
  Result<void> synchronize_blocking();
  std::size_t pending() const;  // operations recorded and not yet sent
  std::size_t depth() const;    // jobs sent and not finished; above ~64, wait

  // From start to stop each operation that runs is timed. stop waits for all that was asked for so far.
  void profile_start();
  void profile_stop(std::function<void(Result<ProfileReport>)> done);

  // Random numbers. manual_seed restarts the sequence.
  void manual_seed(std::uint64_t seed);
  RandomState random_state() const { return random_; }
  void set_random_state(const RandomState& s) { random_ = s; }

  // How operations are recorded now. Of the code that runs: save and restore them around a suspension of the fiber.
  struct Modes {
    bool grad_enabled = true;
    std::optional<DType> autocast;  // products and convolutions of f32 operands are done in it
    bool tf32 = false;              // or stay f32 and may be rounded to TF32 by a GPU
    // A batch in several parts: gradients of all add up to the mean's, and what follows backward (clipping, the
    // optimiser's step, averages) happens with the last one only. Parts count from 0.
    int part = 0, parts = 1;
    bool first_part() const { return part == 0; }
    bool last_part() const { return part + 1 == parts; }
  };
  const Modes& modes() const { return modes_; }
  void set_modes(const Modes& m) { modes_ = m; }
  bool grad_enabled() const { return modes_.grad_enabled; }
  void set_grad_enabled(bool on) { modes_.grad_enabled = on; }
  bool tracing() const;
  // While on, each operation is followed by a look at what it gave: the first one that makes a NaN fails with kind
  // state, code "not_a_number", its inputs and its place in the script. Compiled functions run as they are. Slow.
  void set_check_numbers(bool on);
  bool checks_numbers() const;
  // Asked for the script's position of each operation recorded in a compiled function, for its errors: "train.lua:12".
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

// Gradients are not recorded while one lives. For C++ callers; a binding uses set_grad_enabled.
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
