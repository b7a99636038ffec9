// Internals of the tensor layer: storages, pending operations, and how an operation is recorded. Not for bindings.
//
// A Storage is memory with a version. Each operation writes some storages and reads others. References decide what
// stays alive: handles and reading operations hold a storage; a storage holds the pending operations that write it; an
// operation holds its inputs but not its outputs. An operation whose result is unreachable is therefore freed, and the
// graph's list of pending operations holds weak references only. Once a storage has been created, only the lane thread
// (which runs the device's operations) touches its buffer and error.
#pragma once

#include <algorithm>
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
#include "runtime/core/base/work.hpp"

namespace rille::tensor {

class Orders;  // defined in order.hpp
struct Node;
struct Turns;  // defined in order.hpp

struct Storage {
  std::uint64_t id = 0;
  std::size_t bytes = 0;
  std::uint64_t version = 0;                   // counts the writes after the first one
  std::uint64_t trace = 0;                     // number of the trace (compiled call) that created this storage; 0: none
  bool constant = false;                       // copied from host data inside a compiled function
  std::atomic<const char*> owner{nullptr};     // name to which the memory is accounted (owner.hpp); read by the lane
  std::vector<std::shared_ptr<Node>> writers;  // recorded operations that write this storage and have not been sent
  device::Buffer buffer;
  std::shared_ptr<const Error> error;  // why the storage has no value; null: no error
  std::shared_ptr<Turns> turns;        // used by the lane, and only if launches are on streams
  bool freed = false;                  // the script freed it through one of its handles
  MemoryHeld counted;                  // memory of the object, without its values
};

// A strided view of a storage's elements.
struct Window {
  std::int64_t offset = 0;  // first element, in elements from the start of the storage
  DType dtype = DType::f32;
  Dims shape, strides;
  bool operator==(const Window&) const = default;
};

struct Input {
  std::shared_ptr<Storage> storage;  // null: the operation has no such input
  Window window;
};

struct Output {
  std::weak_ptr<Storage> storage;
  std::size_t bytes = 0;
  Window window;
  bool update = false;  // the operation also reads this output, whose storage existed before
};

struct Replay;  // compile.cpp: a plan with the arguments of one call

// A group of operations that are ended together, such as an optimiser's step: no tensor keeps only a part of their
// changes.
struct Together {
  std::uint64_t id = 0;  // 0: none
  // true: once the first operation has changed a tensor, the others run to their end. false (they may take long): they
  // are broken off, and the changed tensors lose their values.
  bool to_the_end = false;
};

// The work that an operation belongs to, and the work's state when the operation was recorded.
struct Asked {
  std::shared_ptr<Work> work;
  std::uint64_t ends = 0;  // Work::ends() at that time
  bool ended() const { return work->ended_since(ends); }
  kernels::StopSign sign() const {
    return {work->ends_place(), ends, work->promptly() ? kernels::parts_above_usual : 0};
  }
};

struct Node {
  const Op* op = nullptr;  // null: this node replays a plan
  kernels::Attrs attrs;
  kernels::RandomKey random;
  std::shared_ptr<const kernels::Payload> payload;  // not null: a launch, collective or joint update; never removed
  std::vector<Input> in;
  std::vector<Output> out;
  std::shared_ptr<Replay> replay;
  std::string where;  // script position; not empty: outputs are checked for NaN
  Asked asked;
  Together together;
  bool once = false;                       // from a compiled function's first call; its buffers are not reused
  bool marked = false;                     // an operation on a stream will wait for this one (order.hpp)
  std::shared_ptr<device::Stream> stream;  // stream of a launch; null: the device's main stream
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  // frees in a loop: a chain of ten thousand nodes would overflow the stack by recursion
};

inline bool updates(const Node& node) {  // whether it changes a tensor in place
  return std::any_of(node.out.begin(), node.out.end(), [](const Output& out) { return out.update; });
}

struct GradFn;

struct TensorImpl {
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Storage> storage;
  Window window;
  bool requires_grad = false;
  Tensor grad;
  std::shared_ptr<GradFn> grad_fn;
  int output = 0;              // index of this tensor among the outputs of grad_fn
  std::uint64_t argument = 0;  // compiled call that has this tensor, or its base if a view, as argument; 0: none
  MemoryHeld counted;          // memory of a handle that shares another tensor's storage
  TensorImpl() = default;
  TensorImpl(const TensorImpl&) = delete;
  ~TensorImpl();  // frees a chain of .grad in a loop
};

// The lane's state: the operations sent to the lane and not yet run, in order.
struct LaneQueue {
  std::deque<std::shared_ptr<Node>> nodes;
  std::shared_ptr<const Error> first_error;  // first error that no read or synchronize has reported; null: none
  std::unique_ptr<Profile> profile;          // null: no profile is running
  std::string first_infinity;                // while numbers are checked: which operation made the first infinity
  void (*instead)(const Op&, const kernels::Call&) = nullptr;  // for tests: called in place of every kernel
  std::shared_ptr<Orders> orders;                              // null: no launch on a stream so far
  // The group of the latest update, and the tensors that it has changed.
  Together begun;
  std::vector<std::weak_ptr<Storage>> changed;
  // Error memory: stopped at the operation that got no memory; call again to resume. With `give_up` such an operation
  // fails like any other: its outputs get the error, and the following operations run.
  Result<void> run(device::Device& device, kernels::LaneState& lane, bool give_up = false);
  void call(const Op& op, const kernels::Call& call);
  // Like call(), on a device with an executor. Errors: memory, or the device's own.
  Result<void> call_on(device::Executor& executor, const Op& op, const kernels::Call& call);
  Orders& ordered(device::Executor& executor);  // creates `orders` at the first call

 private:
  Result<void> run_all(device::Device& device, kernels::LaneState& lane, bool give_up);
  bool bound_to_run(const Node& node) const { return begun.to_the_end && node.together.id == begun.id; }
  void begin_together(const Node& node);
  void skip(Node& node, const std::shared_ptr<const Error>& why);
  void tear(const Node& node, const std::shared_ptr<const Error>& why);
  Result<void> run_one(Node& node, device::Device& device, kernels::LaneState& lane);
  Result<void> run_ordered(Node& node, device::Device& device, kernels::LaneState& lane);
};

// Parses the text of Call::error: the message, then the hint on a separate line.
Error kernel_error(std::string_view text);

class Notebook;  // compile.cpp: notes each recorded operation

struct Graph::Impl {
  std::vector<std::weak_ptr<Node>> pending;
  std::vector<std::shared_ptr<Node>> launches;  // nodes of `pending` that run even if no result is used
  std::shared_ptr<LaneQueue> queue = std::make_shared<LaneQueue>();
  std::uint64_t next_storage = 1, next_grad = 1, next_trace = 1;
  std::shared_ptr<Work> work = std::make_shared<Work>();
  Together together;
  std::uint64_t next_together = 1;
  std::uint64_t trace = 0;       // current trace; not 0: operations go to the notebook instead of `pending`
  Notebook* notebook = nullptr;  // null: no compiled function is being called
  std::uint32_t dead_traces = 0;
  std::uint64_t marks = 0;  // counts changes of requires_grad and tensors that the script freed
  bool check_numbers = false;
  bool streams = false;     // some operations in `pending` are on streams
  bool streamed = false;    // an operation has been on a stream at least once
  std::string backward_of;  // while numbers are checked: the operation whose gradient is being recorded
};

// Type and shape of an operation's input or output.
struct Spec {
  DType dtype;
  Dims shape;
};

// A new tensor without a value.
Tensor make_tensor(Graph& g, DType dtype, const Dims& shape);
// Whether all elements of the window are inside a storage of `bytes` bytes. record() and read() refuse other windows.
bool lies_within(const Window& window, std::size_t storage_bytes);
// A view of the memory of `t`, without gradient history.
Tensor make_window(const Tensor& t, std::int64_t offset, const Dims& shape, const Dims& strides);

// Records `op`. The caller creates the tensors in `out`; with `update` they are written in place.
// Error state: an operand belongs to an ended trace; invalid: an empty handle, or operands of two graphs.
Result<void> record(Graph& g, OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in,
                    const std::vector<Tensor>& out, bool update = false);
// Records a launch. Tensors that the launch writes must also be in `in`, so that they live until it has run. `stream`
// may be null: the device's main stream.
Result<void> record_launch(Graph& g, std::shared_ptr<const kernels::Payload> payload, const std::vector<Tensor>& in,
                           const std::vector<Tensor>& out, const std::shared_ptr<device::Stream>& stream);
// Like record(), for the gradient of a random operation: `key` repeats the random numbers of that operation.
Result<void> record_keyed(Graph& g, OpId op, const kernels::Attrs& attrs, const kernels::RandomKey& key,
                          const std::vector<Tensor>& in, const std::vector<Tensor>& out);
// Creates the outputs, records `op`, and stores its gradient rule if an input requires grad. Empty inputs are omitted.
Result<std::vector<Tensor>> apply(OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in,
                                  const std::vector<Spec>& specs);
Result<Tensor> apply_one(OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in, const Spec& spec);
// Sets the gradient rule of a view: each tensor of `out` is a window on the memory of in[0].
void attach_grad(OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in, const std::vector<Tensor>& out);
Tensor attach_view(OpId op, const kernels::Attrs& attrs, const Tensor& in, const Tensor& out);

// -- gradients (autograd.cpp)
struct Edge {
  std::shared_ptr<GradFn> fn;  // function that made this input; null: look at `leaf`
  int output = 0;
  std::shared_ptr<TensorImpl> leaf;  // the input itself if it is a leaf; both null: the input needs no gradient
};

struct GradFn {
  const Op* op = nullptr;
  std::uint64_t order = 0;  // greater than the order of every function that made an input
  kernels::Attrs attrs;
  kernels::RandomKey random;
  std::vector<Edge> edges;
  std::vector<Tensor> in, out;          // values kept for the rule, without history; empty if the rule needs none
  std::vector<std::uint64_t> versions;  // storage versions of `in`, then of `out`, when they were kept
  std::vector<Spec> in_specs, out_specs;
  bool released = false;
  std::string where;  // script position, while numbers are checked; else empty
  std::weak_ptr<Graph> owner;
  MemoryHeld counted;
  Graph& graph() const { return *owner.lock(); }  // backward() keeps the graph alive
  ~GradFn();
};

// Read or write a leaf's .grad, and tell the notebook of a compiled call.
Tensor leaf_grad(const std::shared_ptr<TensorImpl>& leaf);
void set_leaf_grad(const std::shared_ptr<TensorImpl>& leaf, const Tensor& grad);

}  // namespace rille::tensor
