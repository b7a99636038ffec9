#include "runtime/compute/tensor/record.hpp"

#include <fmt/format.h>

#include "runtime/compute/device/executor.hpp"
#include "runtime/compute/device/owner.hpp"
#include "runtime/compute/tensor/held.hpp"
#include "runtime/compute/tensor/launch.hpp"
#include "runtime/compute/tensor/notebook.hpp"
#include "runtime/compute/tensor/owner.hpp"

namespace rille::tensor {

namespace {

// Counts the memory of an operation besides its values: node, handles, and the data that backward needs.
MemoryHeld count_object(const Graph& g) {
  return MemoryHeld::count(g.device()->counted_in(), MemoryUse::Part::tensors, object_bytes);
}

}  // namespace

TensorImpl::~TensorImpl() {
  for (Tensor next = std::move(grad); next && next.impl().use_count() == 1;) {
    Tensor inner = std::move(next.impl()->grad);
    next = std::move(inner);
  }
}

Tensor make_tensor(Graph& g, DType dtype, const Dims& shape) {
  const bool possible = bool(check_dims(shape));  // else record() refuses it
  auto storage = std::make_shared<Storage>();
  storage->id = g.impl().next_storage++;
  storage->bytes = possible ? std::size_t(shape.count()) * size_bytes(dtype) : 0;
  storage->trace = g.impl().trace;
  storage->owner = device::OwnedBy::said();
  storage->counted = count_object(g);
  auto impl = std::make_shared<TensorImpl>();
  impl->graph = g.shared_from_this();
  impl->storage = std::move(storage);
  impl->window = {0, dtype, shape, possible ? contiguous_strides(shape) : shape};
  return Tensor(std::move(impl));
}

bool lies_within(const Window& w, std::size_t storage_bytes) {
  __int128 first = w.offset, last = w.offset;
  for (int i = 0; i < w.shape.n; ++i) {
    if (w.shape[i] <= 0) return w.shape[i] == 0;
    const __int128 reach = __int128(w.shape[i] - 1) * w.strides[i];
    (reach < 0 ? first : last) += reach;
  }
  return first >= 0 && (last + 1) * std::int64_t(size_bytes(w.dtype)) <= __int128(storage_bytes);
}

Tensor make_window(const Tensor& t, std::int64_t offset, const Dims& shape, const Dims& strides) {
  if (auto* const notebook = t.graph().impl().notebook) notebook->watch(t);
  Tensor w = t.detach();
  w.impl()->window.offset += offset;
  w.impl()->window.shape = shape;
  w.impl()->window.strides = strides;
  return w;
}

namespace {

Result<void> check_operand(Graph& g, OpId op, const Tensor& t) {
  const auto& impl = *t.impl();
  if (impl.graph.get() != &g) {
    const std::string here = g.device()->name(), there = t.device()->name(), name = op_of(op).name;
    if (here == there) return make_error(ErrorKind::invalid, name + ": the operands belong to two different runtimes");
    return make_error(ErrorKind::invalid,
                      fmt::format("{}: the operands are on different devices, {} and {}", name, here, there),
                      fmt::format("t:to(\"{}\") moves one", here));
  }
  if (impl.storage->trace != 0 && impl.storage->trace != g.impl().trace) {
    return make_error(ErrorKind::state,
                      fmt::format("{}: a {} tensor made inside a compiled function is used outside it", op_of(op).name,
                                  to_string(t.shape())),
                      "return it from the function");
  }
  if (!lies_within(impl.window, impl.storage->bytes))
    return make_error(ErrorKind::internal,
                      fmt::format("{}: a {} view reaches beyond its tensor", op_of(op).name, to_string(t.shape())),
                      "this is a bug of Rille: please report it");
  return success();
}

// A result's shape is computed from the operands' shapes and may exceed the limit of a tensor's size.
Result<void> check_size(OpId op, const Tensor& t) {
  Result<> possible = check_dims(t.shape());
  if (possible) return possible;
  Error e = std::move(possible).error();
  e.message = op_of(op).name + std::string(": ") + e.message;
  return e;
}

Result<void> check_known(Graph& g, OpId op) {
  const auto* executor = g.device()->executor();
  if (!executor || executor->knows(op)) return success();
  return make_error(
      ErrorKind::device,
      fmt::format("{} cannot run on {}: this build has no kernel for it there", op_of(op).name, g.device()->name()),
      "run this part on the CPU: rille.device(\"cpu\")");
}

std::shared_ptr<Node> make_node(OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in,
                                const std::vector<Tensor>& out, bool update) {
  auto node = std::make_shared<Node>();
  node->op = &op_of(op);
  node->attrs = attrs;
  node->in.reserve(in.size());
  for (const auto& t : in) node->in.push_back(t ? Input{t.impl()->storage, t.impl()->window} : Input{});
  node->out.reserve(out.size());
  for (const auto& t : out)
    node->out.push_back({t.impl()->storage, t.impl()->storage->bytes, t.impl()->window, update});
  return node;
}

// Tells the notebook that the function uses `tensors`, in case one shares memory with an argument.
void note_reached(Graph& g, const std::vector<Tensor>& tensors) {
  auto* const notebook = g.impl().notebook;
  if (notebook)
    for (const auto& t : tensors)
      if (t) notebook->reach(t);
}

// Tells the notebook that the function reads `tensors`, which are then watched for changes.
void note_read(Graph& g, const std::vector<Tensor>& tensors) {
  note_reached(g, tensors);
  auto* const notebook = g.impl().notebook;
  if (notebook)
    for (const auto& t : tensors)
      if (t) notebook->watch(t);
}

// Keeps all tensors of a joint update alive until the update has run, even if the script drops its handles before.
void hold(Graph::Impl& impl, const std::shared_ptr<Node>& node, const std::vector<Tensor>& out) {
  std::vector<std::shared_ptr<Storage>> all;
  for (const auto& t : out) all.push_back(t.impl()->storage);
  node->payload = std::make_shared<Held>(std::move(all));
  impl.launches.push_back(node);
}

Result<void> enter(Graph& g, const std::shared_ptr<Node>& node, const std::vector<Tensor>& out, bool update) {
  auto& impl = g.impl();
  node->asked = {impl.work, impl.work->ends()};
  node->together = impl.together;
  if (impl.check_numbers) node->where = impl.backward_of.empty() ? g.where() : impl.backward_of;
  if (impl.notebook) impl.notebook->operation(node, impl.trace != 0);
  node->once = impl.notebook != nullptr;
  if (update)
    for (const auto& t : out) ++t.impl()->storage->version;
  if (impl.trace) return success();
  if (update && out.size() > 1 && !node->payload) hold(impl, node, out);
  for (const auto& t : out) t.impl()->storage->writers.push_back(node);
  impl.pending.push_back(node);
  if (impl.pending.size() >= Graph::pending_limit) g.flush();
  return success();
}

Result<void> record_with(Graph& g, OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in,
                         const std::vector<Tensor>& out, bool update, const kernels::RandomKey* key,
                         kernels::RandomKey* used) {
  for (const auto& t : in)
    if (t) RILLE_CHECK(check_operand(g, op, t));
  for (const auto& t : out) {
    RILLE_CHECK(check_size(op, t));
    RILLE_CHECK(check_operand(g, op, t));
  }
  RILLE_CHECK(check_known(g, op));
  note_read(g, in);
  note_reached(g, out);
  auto node = make_node(op, attrs, in, out, update);
  if (key) {
    node->random = *key;
  } else if (draws(op_of(op))) {
    auto state = g.random_state();
    node->random = {state.seed, state.step, state.index++};
    g.set_random_state(state);
  }
  if (used) *used = node->random;
  return enter(g, node, out, update);
}

// Returns a value as a gradient rule keeps it, without history. The result of an operation counts as an activation.
Tensor kept(const Tensor& t, bool made) {
  if (!t) return t;
  if (made || t.impl()->grad_fn) own_unowned(t, of_activations);
  return t.detach();
}

std::shared_ptr<GradFn> make_grad_fn(OpId id, const kernels::Attrs& attrs, const kernels::RandomKey& random,
                                     const std::vector<Tensor>& in, const std::vector<Tensor>& out) {
  const Op& op = op_of(id);
  auto fn = std::make_shared<GradFn>();
  fn->op = &op;
  fn->owner = out[0].graph().weak_from_this();
  fn->counted = count_object(out[0].graph());
  fn->order = out[0].graph().impl().next_grad++;
  fn->attrs = attrs;
  fn->random = random;
  if (out[0].graph().checks_numbers()) fn->where = out[0].graph().where();
  const bool keep_in = op.keep == Keep::inputs || op.keep == Keep::both;
  const bool keep_out = op.keep == Keep::outputs || op.keep == Keep::both;
  for (const auto& t : in) {
    Edge edge;
    if (t && t.impl()->grad_fn) edge = {t.impl()->grad_fn, t.impl()->output, nullptr};
    else if (t && t.requires_grad()) edge.leaf = t.impl();
    fn->edges.push_back(std::move(edge));
    fn->in_specs.push_back(t ? Spec{t.dtype(), t.shape()} : Spec{});
    fn->in.push_back(keep_in ? kept(t, false) : Tensor{});
  }
  for (const auto& t : out) {
    fn->out_specs.push_back({t.dtype(), t.shape()});
    fn->out.push_back(keep_out ? kept(t, true) : Tensor{});
  }
  for (const auto* list : {&fn->in, &fn->out})
    for (const auto& t : *list) fn->versions.push_back(t ? t.version() : 0);
  return fn;
}

bool wants_grad(Graph& g, const std::vector<Tensor>& in) {
  if (!g.grad_enabled()) return false;
  for (const auto& t : in)
    if (t && t.requires_grad()) return true;
  return false;
}

void attach(const std::shared_ptr<GradFn>& fn, const std::vector<Tensor>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!is_floating(out[i].dtype())) continue;
    out[i].impl()->requires_grad = true;
    out[i].impl()->grad_fn = fn;
    out[i].impl()->output = int(i);
  }
}

}  // namespace

Result<void> record(Graph& g, OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in,
                    const std::vector<Tensor>& out, bool update) {
  return record_with(g, op, attrs, in, out, update, nullptr, nullptr);
}

Result<void> record_launch(Graph& g, std::shared_ptr<const kernels::Payload> payload, const std::vector<Tensor>& in,
                           const std::vector<Tensor>& out, const std::shared_ptr<device::Stream>& stream) {
  for (const auto& t : in) RILLE_CHECK(check_operand(g, OpId::launch, t));
  RILLE_CHECK(check_known(g, OpId::launch));
  note_read(g, in);
  auto node = make_node(OpId::launch, {}, in, out, true);
  node->payload = std::move(payload);
  // Compiled functions order their own launches, and checked numbers need the main stream; both ignore `stream`.
  if (stream && g.device()->executor() && !g.impl().notebook && !g.impl().check_numbers) {
    node->stream = stream;
    g.impl().streams = g.impl().streamed = true;
  }
  if (!g.impl().trace) g.impl().launches.push_back(node);
  RILLE_CHECK(enter(g, node, out, true));
  if (g.impl().launches.size() >= launches_pending) g.flush();
  return success();
}

Result<void> record_keyed(Graph& g, OpId op, const kernels::Attrs& attrs, const kernels::RandomKey& key,
                          const std::vector<Tensor>& in, const std::vector<Tensor>& out) {
  return record_with(g, op, attrs, in, out, false, &key, nullptr);
}

Result<std::vector<Tensor>> apply(OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in,
                                  const std::vector<Spec>& specs) {
  Graph& g = in[0].graph();
  std::vector<Tensor> out;
  for (const auto& s : specs) out.push_back(make_tensor(g, s.dtype, s.shape));
  kernels::RandomKey random;
  RILLE_CHECK(record_with(g, op, attrs, in, out, false, nullptr, &random));
  if (op_of(op).grad && wants_grad(g, in)) attach(make_grad_fn(op, attrs, random, in, out), out);
  return out;
}

Result<Tensor> apply_one(OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in, const Spec& spec) {
  RILLE_TRY(auto out, apply(op, attrs, in, {spec}));
  return std::move(out[0]);
}

void attach_grad(OpId op, const kernels::Attrs& attrs, const std::vector<Tensor>& in, const std::vector<Tensor>& out) {
  if (wants_grad(out[0].graph(), in)) attach(make_grad_fn(op, attrs, {}, in, out), out);
}

Tensor attach_view(OpId op, const kernels::Attrs& attrs, const Tensor& in, const Tensor& out) {
  attach_grad(op, attrs, {in}, {out});
  return out;
}

}  // namespace rille::tensor
