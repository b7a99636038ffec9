// Inside the tensor layer: storages, pending operations, and how an operation is recorded. Not for bindings.
//
// A Storage is memory with a version. Each operation writes some storages and reads others. References decide what is
// alive: handles and readers hold a storage; a storage holds the pending operations that write it; an operation holds
// its inputs but not its outputs. An operation whose result is unreachable is therefore freed, and the graph's list of
// pending operations holds only weak references. After a storage's creation only the lane thread touches its buffer and
// error.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/compute/device/stream.hpp"
#include "runtime/compute/tensor/graph.hpp"
#include "runtime/compute/tensor/profile.hpp"
#include "runtime/compute/tensor/shape.hpp"
#include "runtime/compute/tensor/table.hpp"

namespace rille::tensor {

class Orders;  // order.hpp
struct Node;
struct Turns;  // order.hpp

struct Storage {
  std::uint64_t id = 0;
  std::size_t bytes = 0;
  std::uint64_t version = 0;                   // writes after the first
  std::uint64_t trace = 0;                     // the trace in which it was created; 0: none
  bool constant = false;                       // host data given inside a compiled function
  std::atomic<const char*> owner{nullptr};     // its memory's owner (owner.hpp); the lane reads it
  std::vector<std::shared_ptr<Node>> writers;  // pending
  device::Buffer buffer;
  std::shared_ptr<const Error> error;  // why it has no value
  std::shared_ptr<Turns> turns;        // the lane's; only if launches are on streams
  bool freed = false;                  // by the script, through one of its handles
};

// A strided window on a storage.
struct Window {
  std::int64_t offset = 0;  // elements
  DType dtype = DType::f32;
  Dims shape, strides;
  bool operator==(const Window&) const = default;
};

struct Input {
  std::shared_ptr<Storage> storage;  // null: omitted
  Window window;
};

struct Output {
  std::weak_ptr<Storage> storage;
  std::size_t bytes = 0;
  Window window;
  bool update = false;  // reads what it writes; the storage existed before
};

struct Replay;  // compile.cpp: a plan with its arguments

struct Node {
  const Op* op = nullptr;  // null: a replay
  kernels::Attrs attrs;
  kernels::RandomKey random;
  std::shared_ptr<const kernels::Payload> payload;  // of a launch; the node is then never removed
  std::vector<Input> in;
  std::vector<Output> out;
  std::shared_ptr<Replay> replay;
  std::string where;                       // if not empty, outputs are checked for NaN (odd_numbers.hpp)
  bool once = false;                       // from a compiled function's first call: the next call uses an arena
  bool marked = false;                     // a stream will wait for it (order.hpp)
  std::shared_ptr<device::Stream> stream;  // of a launch; null: the device's own order
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  // iterative: a chain of ten thousand must not recurse
};

struct GradFn;

struct TensorImpl {
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Storage> storage;
  Window window;
  bool requires_grad = false;
  Tensor grad;
  std::shared_ptr<GradFn> grad_fn;
  int output = 0;              // which output of grad_fn
  std::uint64_t argument = 0;  // the compiled call of which it is an argument, or a window on one
};

// The lane's state: the operations sent and not yet run, in order.
struct LaneQueue {
  std::deque<std::shared_ptr<Node>> nodes;
  std::shared_ptr<const Error> first_error;  // not yet reported
  std::unique_ptr<Profile> profile;          // while a profile runs
  std::string first_infinity;                // while numbers are checked: where the first infinity came from
  void (*instead)(const Op&, const kernels::Call&) = nullptr;  // tests: runs operations in place of their kernels
  std::shared_ptr<Orders> orders;                              // null: no launch on a stream so far
  // memory: stopped at that operation; run again to resume. With `give_up`, an operation without memory fails like any
  // other: its outputs get the error, and the rest runs.
  Result<void> run(device::Device& device, kernels::LaneState& lane, bool give_up = false);
  void call(const Op& op, const kernels::Call& call);
  // The same on another device. Errors: memory, or the device's own.
  Result<void> call_on(device::Executor& executor, const Op& op, const kernels::Call& call);
  Orders& ordered(device::Executor& executor);  // creates them

 private:
  Result<void> run_one(Node& node, device::Device& device, kernels::LaneState& lane);
  Result<void> run_ordered(Node& node, device::Device& device, kernels::LaneState& lane);
};

// The error in Call::error: the message, then the hint on a line of its own.
Error kernel_error(std::string_view text);

class Notebook;  // compile.cpp: listens to what is recorded

struct Graph::Impl {
  std::vector<std::weak_ptr<Node>> pending;
  std::vector<std::shared_ptr<Node>> launches;  // those in `pending` that run even if no result is used
  std::shared_ptr<LaneQueue> queue = std::make_shared<LaneQueue>();
  std::uint64_t next_storage = 1, next_grad = 1, next_trace = 1;
  std::uint64_t trace = 0;       // not 0: operations go to the notebook, not to `pending`
  Notebook* notebook = nullptr;  // while a compiled function is called
  std::uint32_t dead_traces = 0;
  std::uint64_t marks = 0;  // counts changes of requires_grad and tensors freed by the script
  bool check_numbers = false;
  bool streams = false;     // some of `pending` are on streams
  bool streamed = false;    // some have been on streams
  std::string backward_of;  // while checking: the operation whose gradient is being recorded
};

// Type and shape of an output.
struct Spec {
  DType dtype;
  Dims shape;
};

// A fresh, unwritten tensor.
Tensor make_tensor(Graph& g, DType dtype, const Dims& shape);
// A view of a tensor's memory, without history.
Tensor make_window(const Tensor& t, std::int64_t offset, const Dims& shape, const Dims& strides);

// Records `op`. The caller makes the handles in `out`; with `update` they are written in place.
// state: an operand belongs to an ended trace; invalid: an empty handle, or operands of two graphs.
Result<void> record(Graph& g, OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in,
                    const std::vector<Tensor>& out, bool update = false);
// A launch: tensors that it writes are also among `in`, so that they live until it has run. `stream` may be null.
Result<void> record_launch(Graph& g, std::shared_ptr<const kernels::Payload> payload, const std::vector<Tensor>& in,
                           const std::vector<Tensor>& out, const std::shared_ptr<device::Stream>& stream);
// Like record(), for the gradient of a random operation: uses the operation's random numbers again.
Result<void> record_keyed(Graph& g, OpId op, const kernels::Attrs& attrs, const kernels::RandomKey& key,
                          const std::vector<Tensor>& in, const std::vector<Tensor>& out);
// Makes the outputs, records `op`, and stores the gradient rule if one is needed. Empty inputs are omitted.
Result<std::vector<Tensor>> apply(OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in,
                                  const std::vector<Spec>& specs);
Result<Tensor> apply_one(OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in, const Spec& spec);
// Sets the gradient rule of a view: `out` is a window on in's memory.
void attach_grad(OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in, const std::vector<Tensor>& out);
Tensor attach_view(OpId op, const kernels::Attrs& attrs, const Tensor& in, const Tensor& out);

// -- gradients (autograd.cpp)
struct Edge {
  std::shared_ptr<GradFn> fn;  // the function that made this input, or
  int output = 0;
  std::shared_ptr<TensorImpl> leaf;  // the leaf itself; neither: needs no gradient
};

struct GradFn {
  const Op* op = nullptr;
  std::uint64_t order = 0;  // larger than that of its inputs' functions
  kernels::Attrs attrs;
  kernels::RandomKey random;
  std::vector<Edge> edges;
  std::vector<Tensor> in, out;          // kept values, without history; empty if the rule needs none
  std::vector<std::uint64_t> versions;  // of in, then out
  std::vector<Spec> in_specs, out_specs;
  bool released = false;
  std::string where;  // while numbers are checked
  std::weak_ptr<Graph> owner;
  Graph& graph() const { return *owner.lock(); }  // alive: backward() holds it
  ~GradFn();
};

// Reads or writes a leaf's .grad and tells the notebook.
Tensor leaf_grad(const std::shared_ptr<TensorImpl>& leaf);
void set_leaf_grad(const std::shared_ptr<TensorImpl>& leaf, const Tensor& grad);

}  // namespace rille::tensor
