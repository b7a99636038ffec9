#include "runtime/compute/tensor/compile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <unordered_set>
#include <utility>

#include "runtime/compute/device/executor.hpp"
#include "runtime/compute/tensor/replay.hpp"

namespace rille::tensor {

void send(Graph& g, std::shared_ptr<Node> node);  // defined in graph.cpp

namespace {

// A leaf, and its .grad when the function was recorded: the plan depends on its type, shape and strides.
struct LeafGuard {
  std::shared_ptr<TensorImpl> leaf;
  bool had = false;
  Window grad;
  explicit LeafGuard(const Guard& g) : leaf(g.leaf), had(g.had()), grad(had ? g.before.impl()->window : Window()) {}
  bool fits() const {
    if (!leaf->grad || !had) return bool(leaf->grad) == had;
    const Window& now = leaf->grad.impl()->window;
    return now.dtype == grad.dtype && now.shape == grad.shape && now.strides == grad.strides;
  }
};

// The recording for one key: the operations noted in the first call and, from the second call on, the plan.
struct Variant {
  std::string key;
  Signature signature;  // the parts of the key, to name the cause of another recording
  std::vector<Note> notes;
  std::vector<LeafGuard> guards;
  std::vector<Watched> watched;
  mutable std::uint64_t marks = 0;                   // Graph::Impl::marks at the last successful check of `watched`
  std::vector<std::shared_ptr<TensorImpl>> graded;   // leaves that had a .grad, which is a further input; in order
  std::vector<std::shared_ptr<TensorImpl>> changed;  // leaves whose .grad the function sets
  std::vector<bool> cleared;                         // for each leaf of `changed`: the function cleared .grad
  std::size_t results = 0;                           // number of outputs that are not gradients
  std::shared_ptr<Plan> plan;

  bool fits(const std::string& wanted, std::uint64_t marks_now) const {
    if (key != wanted) return false;
    for (const LeafGuard& g : guards)
      if (!g.fits()) return false;
    if (marks != marks_now && first_changed()) return false;
    marks = marks_now;
    return true;
  }

  // The first watched tensor that was freed or whose requires_grad changed; null: no such tensor.
  const Watched* first_changed() const {
    const auto found = std::find_if(watched.begin(), watched.end(), [](const Watched& w) { return w.is_changed(); });
    return found == watched.end() ? nullptr : &*found;
  }

  std::vector<Difference> different_from(const Signature& now) const {
    auto out = differences(signature, now);
    if (!out.empty()) return out;
    std::size_t count = 0;
    for (const LeafGuard& g : guards) {
      if (g.fits() || ++count > 1) continue;
      const Window& w = g.leaf->window;
      out.push_back({Cause::grad, fmt::format("leaf {}{} had {} gradient and has {} now", name_of(w.dtype),
                                              to_string(w.shape), g.had ? "a" : "no",
                                              !g.had         ? "one"
                                              : g.leaf->grad ? "one of another type or layout"
                                                             : "none")});
    }
    if (count > 1) out[0].text += fmt::format(", and so {} more", count - 1);
    if (const Watched* w = out.empty() ? first_changed() : nullptr)
      out.push_back({Cause::grad, fmt::format("a tensor that the function uses, {}{}, {}", name_of(w->window.dtype),
                                              to_string(w->window.shape),
                                              w->is_freed()      ? "was freed"
                                              : w->requires_grad ? "requires no grad any more"
                                                                 : "requires grad now")});
    return out;
  }
};

using Ids = std::unordered_set<std::uint64_t>;

// Shapes, strides and types of the inputs, and which inputs share memory. The offset in memory is part of the key only
// for storages that the function also reaches other than through an argument (`outside`).
std::string key_of(const std::vector<Tensor>& inputs, const std::string& extra, const Ids& outside) {
  std::string key = extra;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& w = inputs[i].impl()->window;
    key += fmt::format("|{}{}{}", name_of(w.dtype), to_string(w.shape), to_string(w.strides));
    const auto id = inputs[i].impl()->storage->id;
    if (!outside.empty() && outside.contains(id)) key += fmt::format("@{}+{}", id, w.offset);
    for (std::size_t j = 0; j < i; ++j) {
      if (inputs[j].impl()->storage != inputs[i].impl()->storage) continue;
      key += fmt::format("={}+{}", j, w.offset - inputs[j].impl()->window.offset);
      break;
    }
  }
  return key;
}

}  // namespace

struct Compiled::State {
  std::shared_ptr<Graph> graph;
  bool check = false;
  Recompute recompute = Recompute::none;
  bool epilogues = false;
  int part = 0, parts = 1;      // part of the call in progress, or of the next call
  bool plain = false;           // the call in progress runs uncompiled, because numbers are checked
  std::list<Variant> variants;  // the recordings, the most recently used first
  Retraces retraces;
  Signature signature;              // signature of the call in progress, if its key is new
  std::vector<Difference> cause;    // why the key of the call in progress is new
  std::string moved;                // "argument 1: device cpu became cuda:0"; cleared at the first recording
  std::deque<std::size_t> dropped;  // hashes of the keys dropped last
  Variant* current = nullptr;       // recording for the call in progress; null: its key is new
  std::string key, plain_key;       // key of the call in progress; plain_key: the key without the tensors' part
  Ids outside;                      // storages that a recording reached other than through an argument
  std::unique_ptr<Notebook> notebook;
  RandomState random_before;
  std::vector<Tensor> inputs, outputs;
  std::shared_ptr<const Plan> last;                                            // plan of the latest call
  std::shared_ptr<device::Buffer> arena = std::make_shared<device::Buffer>();  // shared by all plans; used by the lane

  std::string why_one_by_one() const {
    auto* const executor = graph->device()->executor();
    return executor ? executor->why_one_by_one() : std::string();
  }

  bool tracing() const { return current != nullptr; }

  void stop() {
    graph->impl().notebook = nullptr;
    graph->impl().trace = 0;
  }

  // Frees the arena, because a call that is not replayed needs as much memory again. Later replays allocate a new
  // arena.
  void give_back_arena() const {
    const auto planned = [](const Variant& v) { return v.plan != nullptr; };
    if (std::none_of(variants.begin(), variants.end(), planned)) return;
    graph->device()->lane().post([arena = arena, device = graph->device()](kernels::LaneState&) {
      if (!*arena) return;
      arena->reset();
      device->release_cache();
    });
  }

  void set_part(int now, int of) {
    auto modes = graph->modes();
    modes.part = now;
    modes.parts = of;
    graph->set_modes(modes);
  }

  std::string part_name() const {
    if (parts == 1) return "";
    return fmt::format("{} of {}", part == 0 ? "first" : part + 1 == parts ? "last" : "one", parts);
  }

  void part_done() {
    set_part(0, 1);
    part = (part + 1) % parts;
  }

  void restore_grads() {
    for (const auto& g : notebook->guards())
      if (g.changed) g.leaf->grad = g.before;
  }

  // Names the differences between the call and the recording that is most like it.
  void find_cause(const std::string& wanted) {
    signature = signature_of(inputs, wanted, part_name());
    cause.clear();
    if (variants.empty() && !moved.empty()) cause.push_back({Cause::device, moved});
    for (const auto& v : variants) {
      auto found = v.different_from(signature);
      const bool nearest = found.empty() || found[0].cause == Cause::grad;  // only a .grad differs
      if (cause.empty() || nearest || found.size() < cause.size()) cause = std::move(found);
      if (nearest) break;
    }
    if (!variants.empty() && cause.empty() && !outside.empty()) {
      cause.push_back({Cause::sharing, "an argument is, or is no longer, a tensor the function reaches by itself"});
    }
    if (std::find(dropped.begin(), dropped.end(), std::hash<std::string>{}(key)) == dropped.end()) return;
    cause.insert(cause.begin(),
                 {Cause::dropped, fmt::format("its recording had been dropped: {} are kept", variant_limit)});
  }

  void keep(Variant v) {
    if (!cause.empty()) retraces.add(cause);
    moved.clear();
    variants.push_front(std::move(v));
    if (variants.size() <= variant_limit) return;
    dropped.push_back(std::hash<std::string>{}(variants.back().key));
    if (dropped.size() > 8 * variant_limit) dropped.pop_front();
    variants.pop_back();
    ++retraces.dropped;
  }

  void learn(Variant& v) {
    v.notes = notebook->notes();
    outside.insert(notebook->reached().begin(), notebook->reached().end());
    for (const auto& note : v.notes)
      for (const auto* list : {&note.in, &note.out})
        for (const auto& [place, window] : *list)
          if (place.kind == Origin::Kind::outside) outside.insert(place.number);
    v.key = key_of(inputs, plain_key, outside);
    v.guards.clear();
    for (const auto& g : notebook->guards()) v.guards.emplace_back(g);
    v.watched = notebook->watched();
    v.marks = 0;  // forces a check of `watched` at the next call
  }

  Result<void> capture(Variant& v, const std::vector<Tensor>& results) {
    std::vector<Tensor> all = results;
    v.results = results.size();
    v.graded.clear();
    v.changed.clear();
    v.cleared.clear();
    for (const auto& g : notebook->guards()) {
      if (g.had()) v.graded.push_back(g.leaf);
      if (!g.changed) continue;
      v.changed.push_back(g.leaf);
      v.cleared.push_back(!g.leaf->grad);
      if (g.leaf->grad) all.push_back(g.leaf->grad);
    }
    RILLE_TRY(v.plan, make_plan(*notebook, all,
                                {recompute, why_one_by_one().empty(), epilogues && graph->device()->executor()}));
    v.plan->arena = arena;
    return success();
  }

  void replay(Variant& v) {
    auto call = std::make_shared<Replay>();
    call->plan = v.plan;
    const auto random = graph->random_state();
    call->seed = random.seed;
    call->step = random.step;
    call->asked = {graph->work(), graph->work()->ends()};
    for (const auto& t : inputs) call->inputs.push_back({t.impl()->storage, t.impl()->window});
    for (const auto& leaf : v.graded) call->inputs.push_back({leaf->grad.impl()->storage, leaf->grad.impl()->window});
    std::vector<std::shared_ptr<Storage>> fresh;
    for (const auto bytes : v.plan->output_bytes) {
      auto storage = std::make_shared<Storage>();
      storage->id = graph->impl().next_storage++;
      storage->bytes = bytes;
      call->outputs.push_back(storage);
      fresh.push_back(std::move(storage));
    }
    outputs.clear();
    for (const auto& out : v.plan->outputs) outputs.push_back(output(out, call->inputs, fresh));
    for (const auto& storage : v.plan->written) ++storage->version;
    auto node = std::make_shared<Node>();
    node->asked = call->asked;
    node->replay = std::move(call);
    send(*graph, std::move(node));
    std::size_t next = v.results;
    for (std::size_t i = 0; i < v.changed.size(); ++i) v.changed[i]->grad = v.cleared[i] ? Tensor{} : outputs[next++];
    outputs.resize(v.results);
    graph->set_random_state({random.seed, random.step, v.plan->draws});
    last = v.plan;
  }

  Tensor output(const PlanOutput& out, const std::vector<Input>& in,
                const std::vector<std::shared_ptr<Storage>>& fresh) const {
    auto impl = std::make_shared<TensorImpl>();
    impl->graph = graph;
    impl->window = out.window;
    switch (out.slot.kind) {
      case OperandMemory::Kind::input:
        impl->storage = in[out.slot.number].storage;
        impl->window.offset += in[out.slot.number].window.offset;
        break;
      case OperandMemory::Kind::output: impl->storage = fresh[out.slot.number]; break;
      default: impl->storage = out.outside;
    }
    return Tensor(std::move(impl));
  }
};

Compiled::Compiled(std::shared_ptr<Graph> graph, bool check, Recompute recompute, bool epilogues, int accumulate)
    : state_(std::make_unique<State>()) {
  state_->graph = std::move(graph);
  state_->check = check;
  state_->recompute = recompute;
  state_->epilogues = epilogues;
  state_->parts = accumulate;
}
Compiled::~Compiled() {
  if (state_ && state_->notebook) abandon();
}
Compiled::Compiled(Compiled&&) noexcept = default;
Compiled& Compiled::operator=(Compiled&&) noexcept = default;

Result<Compiled::Next> Compiled::begin(const std::vector<Tensor>& inputs, const std::string& key) {
  auto& s = *state_;
  auto& impl = s.graph->impl();
  if (impl.notebook)
    return make_error(ErrorKind::state, "a compiled function was called inside a compiled function",
                      "call the plain function there, the one that was given to rille.compile");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i])
      return make_error(ErrorKind::invalid, fmt::format("compile: argument {} is an empty tensor handle", i + 1));
    if (inputs[i].requires_grad()) {
      return make_error(ErrorKind::invalid,
                        fmt::format("compile: argument {}, {}, requires grad", i + 1, to_string(inputs[i].shape())),
                        "pass t:detach(); a compiled function reaches parameters as upvalues, not as arguments");
    }
    if (inputs[i].impl()->storage->trace)
      return make_error(
          ErrorKind::state,
          fmt::format("compile: argument {} was made inside a compiled function, where it has no value yet", i + 1));
  }
  s.random_before = s.graph->random_state();
  s.graph->set_random_state({s.random_before.seed, s.random_before.step + 1, 0});
  s.inputs.clear();
  for (const auto& t : inputs) s.inputs.push_back(t.detach());
  ++s.retraces.calls;
  s.plain = s.graph->checks_numbers();
  if (s.plain) {
    s.set_part(s.part, s.parts);
    return Next::call;
  }
  s.plain_key = s.parts == 1 ? key : key + "|" + s.part_name();
  s.key = key_of(s.inputs, s.plain_key, s.outside);
  s.current = nullptr;
  for (auto it = s.variants.begin(); it != s.variants.end(); ++it) {
    if (!it->fits(s.key, impl.marks)) continue;
    s.variants.splice(s.variants.begin(), s.variants, it);
    s.current = &s.variants.front();
    break;
  }
  if (!s.current) s.find_cause(key);
  if (s.current && s.current->plan && !s.check) {
    s.replay(*s.current);
    s.part_done();
    return Next::replayed;
  }
  if (!s.current) s.give_back_arena();
  s.set_part(s.part, s.parts);
  const auto call = impl.next_trace++;
  s.notebook = std::make_unique<Notebook>(s.graph->where_, call);
  for (const auto& t : s.inputs) {
    t.impl()->argument = call;
    s.notebook->seed_input(t);
  }
  impl.notebook = s.notebook.get();
  if (s.current) impl.trace = impl.next_trace++;
  return Next::call;
}

const std::vector<Tensor>& Compiled::arguments() const { return state_->inputs; }
const std::vector<Tensor>& Compiled::outputs() const { return state_->outputs; }
PlanInfo Compiled::info() const {
  const auto& plan = state_->last;
  if (!plan) return {};
  std::string why = state_->why_one_by_one();
  const std::lock_guard lock(plan->capture_note->mutex);
  if (const auto& failed = plan->capture_note->why; !failed.empty()) {
    why = "not captured as one: " + failed + (why.empty() ? "" : "; nor joined: " + why);
  }
  return {plan->recorded, plan->calls.size(), plan->arena_bytes, plan->temporary_bytes, why, plan->costs};
}

const Retraces& Compiled::retraces() const { return state_->retraces; }
std::size_t Compiled::variants() const { return state_->variants.size(); }
std::string Compiled::take_warning() { return std::exchange(state_->retraces.warning, {}); }

void Compiled::succeed(Compiled& before) {
  auto& s = *state_;
  const auto& was = *before.state_;
  s.retraces = was.retraces;
  s.retraces.dropped += was.variants.size();
  s.moved = was.variants.empty() ? was.moved
                                 : fmt::format("the arguments' device: {} became {}", was.graph->device()->name(),
                                               s.graph->device()->name());
}

void Compiled::abandon() {
  auto& s = *state_;
  if (std::exchange(s.plain, false) || s.notebook) s.set_part(0, 1);
  if (!s.notebook) return;
  s.stop();
  if (s.tracing()) {
    s.restore_grads();
    s.graph->set_random_state(s.random_before);
  }
  s.notebook.reset();
  s.current = nullptr;
}

Result<std::vector<Tensor>> Compiled::end(const std::vector<Tensor>& results) {
  auto& s = *state_;
  if (std::exchange(s.plain, false)) {
    s.part_done();
    s.outputs.clear();
    for (const auto& t : results) s.outputs.push_back(t.detach());
    return s.outputs;
  }
  if (!s.notebook)
    return make_error(ErrorKind::state, "compile: end() without begin()",
                      "call begin() before the function runs, and end() after it");
  for (const auto& t : results) {
    if (t) continue;
    abandon();
    return make_error(ErrorKind::invalid, "compile: the function returned an empty tensor handle");
  }
  for (const auto& t : results) s.notebook->reach(t);
  if (!s.tracing()) {
    s.stop();
    s.part_done();
    Variant v;
    v.signature = std::move(s.signature);
    s.learn(v);
    s.keep(std::move(v));
    s.notebook.reset();
    s.outputs.clear();
    for (const auto& t : results) s.outputs.push_back(t.detach());
    return s.outputs;
  }
  Variant& v = *s.current;
  if (auto difference = first_difference(v.notes, s.notebook->notes()); !difference.empty()) {
    s.learn(v);  // the next call is compared with the operations of this call
    v.plan.reset();
    abandon();
    return make_error(ErrorKind::state,
                      "the compiled function ran other operations than in the call before: " + difference,
                      "what changes between calls has to be an argument, or part of the key");
  }
  if (!v.plan) {
    if (auto made = s.capture(v, results); !made) {
      v.plan.reset();
      abandon();
      return std::move(made).error();
    }
  }
  s.stop();
  s.restore_grads();
  s.part_done();
  s.replay(v);
  s.notebook.reset();
  return s.outputs;
}

}  // namespace rille::tensor
