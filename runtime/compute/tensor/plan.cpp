// Makes a plan from a trace. Removes operations whose results are unused; lets an element-wise result reuse the memory
// of an input that is not read afterwards; and places all other temporaries in one arena by lifetime: largest first,
// each at the lowest offset that is free during its lifetime.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "runtime/compute/device/owner.hpp"
#include "runtime/compute/tensor/collective.hpp"
#include "runtime/compute/tensor/epilogues.hpp"
#include "runtime/compute/tensor/fuse.hpp"
#include "runtime/compute/tensor/owner.hpp"
#include "runtime/compute/tensor/replay.hpp"

namespace rille::tensor {

namespace {

using StorageIds = std::unordered_set<std::uint64_t>;

struct Temporary {
  std::size_t bytes = 0, first = 0, last = 0, offset = 0;
  std::uint64_t owner = 0;  // id of the storage whose memory this one uses, usually its own id
};

class Planner {
 public:
  Planner(const Notebook& notebook, const std::vector<Tensor>& results, const PlanOptions& options)
      : notebook_(notebook), results_(results), options_(options) {}

  Result<std::shared_ptr<Plan>> run() {
    plan_->recorded = notebook_.nodes().size();
    name_owners();
    number_outputs();
    const IsTemporary inner = [this](std::uint64_t id) { return temporary(id); };
    nodes_ = leave_gradients_narrow(accumulate_rows(share_common(notebook_.nodes(), inner), inner), inner);
    RILLE_CHECK(keep_what_matters());
    if (options_.recompute != Recompute::none) live_ = recompute_late(live_, inner, options_.recompute, made_);
    for (const auto& storage : made_) made_ids_.insert(storage->id);
    if (options_.epilogues) live_ = join_epilogues(live_, inner);
    if (options_.fuse) live_ = fuse_elementwise(live_, inner);
    measure_lifetimes();
    share_in_place();
    place();
    for (const auto& node : live_) emit(*node);
    bind_together();
    count_costs();
    for (const auto& note : notebook_.notes())
      if (draws(*note.op)) plan_->draws = std::max(plan_->draws, note.random_index + 1);
    return plan_;
  }

 private:
  void name_owners() {
    const auto& notes = notebook_.notes();
    if (notes.empty() || notes[0].where.empty()) return;
    plan_->arena_owner = device::interned("arena of the compiled function at " + notes[0].where);
    results_owner_ = device::interned("results of the compiled function at " + notes[0].where);
  }

  Origin place_of(std::uint64_t id) const {
    return made_ids_.contains(id) ? Origin{Origin::Kind::born, id} : notebook_.place_of(id);
  }
  bool temporary(std::uint64_t id) const { return place_of(id).kind == Origin::Kind::born && !outputs_.contains(id); }

  void number_outputs() {
    for (const auto& t : results_) {
      const auto& storage = t.impl()->storage;
      const auto where = notebook_.place_of(storage->id);
      PlanOutput out{{}, nullptr, t.impl()->window};
      if (where.kind == Origin::Kind::input) {
        out.slot = {OperandMemory::Kind::input, where.number};
        out.window.offset -= notebook_.inputs()[where.number].impl()->window.offset;
      } else if (where.kind == Origin::Kind::born) {
        const auto [found, fresh] = outputs_.try_emplace(storage->id, plan_->output_bytes.size());
        if (fresh) {
          plan_->output_bytes.push_back(storage->bytes);
          plan_->output_owners.push_back(storage->owner == of_gradients ? of_gradients : results_owner_);
        }
        out.slot = {OperandMemory::Kind::output, found->second};
      } else {
        out.slot = {OperandMemory::Kind::fixed, 0};
        out.outside = storage;
      }
      plan_->outputs.push_back(std::move(out));
    }
  }

  // From the last operation back: keeps an operation if it writes a storage made outside, or one that is read later.
  Result<void> keep_what_matters() {
    StorageIds wanted, written;
    for (const auto& [id, number] : outputs_) wanted.insert(id);
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      bool matters = nodes_[i]->payload != nullptr;
      for (const auto& out : nodes_[i]->out) {
        const auto id = id_of(out);
        const auto kind = notebook_.place_of(id).kind;
        if (kind == Origin::Kind::constant) {
          return make_error(ErrorKind::invalid,
                            fmt::format("{} writes to a tensor that was made from host data inside a compiled function",
                                        nodes_[i]->op->name),
                            "write to t:clone() instead");
        }
        if (kind == Origin::Kind::outside && written.insert(id).second) plan_->written.push_back(notebook_.storage(id));
        matters = matters || kind != Origin::Kind::born || wanted.contains(id);
      }
      if (!matters) continue;
      for (const auto& in : nodes_[i]->in)
        if (in.storage) wanted.insert(in.storage->id);
      live_.push_back(nodes_[i]);
    }
    std::reverse(live_.begin(), live_.end());
    return success();
  }

  void touch(std::uint64_t id, std::size_t bytes, std::size_t at) {
    if (!temporary(id)) return;
    auto [found, fresh] = temporaries_.try_emplace(id, Temporary{bytes, at, at, 0, id});
    found->second.last = at;
    if (fresh) {
      order_.push_back(id);
      plan_->temporary_bytes += bytes;
    }
  }

  void measure_lifetimes() {
    for (std::size_t i = 0; i < live_.size(); ++i) {
      for (const auto& in : live_[i]->in)
        if (in.storage) touch(in.storage->id, in.storage->bytes, i);
      for (const auto& out : live_[i]->out) touch(id_of(out), out.bytes, i);
    }
  }

  static bool whole(const Window& w, const Window& like, std::size_t bytes) {
    return w.offset == 0 && w.shape == like.shape && is_contiguous(w.shape, w.strides) &&
           std::size_t(w.shape.count()) * size_bytes(w.dtype) == bytes && size_bytes(w.dtype) == size_bytes(like.dtype);
  }

  // Whether a result may take the memory of operand k, if no later operation reads k. Element-wise operations may. So
  // may the gradient of logits, which reads each logit before it writes there.
  static bool may_share(const Op& op, std::size_t k) {
    return op.in_place || (op.id == OpId::cross_entropy_grad && k == 1);
  }

  void share_in_place() {
    for (std::size_t i = 0; i < live_.size(); ++i) {
      const Node& node = *live_[i];
      const bool group = node.op->id == OpId::fused;
      if (!group && (node.out.size() != 1 || node.out[0].update)) continue;
      for (std::size_t k = 0; k < node.out.size(); ++k) share_output(i, int(k), group);
    }
  }

  void share_output(std::size_t i, int k, bool group) {
    const Node& node = *live_[i];
    const Output& made = node.out[std::size_t(k)];
    const auto out = temporaries_.find(id_of(made));
    if (out == temporaries_.end() || out->second.first != i || !whole(made.window, made.window, made.bytes)) return;
    for (const auto& in : node.in) {
      if (!in.storage) continue;
      const auto number = std::size_t(&in - node.in.data());
      if (group ? !static_cast<const FusedGroup&>(*node.payload).may_share(int(number), int(node.in.size()), k)
                : !may_share(*node.op, number))
        continue;
      const auto source = temporaries_.find(in.storage->id);
      if (source == temporaries_.end() || source->first == out->first || source->second.bytes != out->second.bytes)
        continue;
      auto& owner = temporaries_.at(source->second.owner);
      const bool ends_here = source->second.last == i && owner.last == i;
      const bool plain = std::all_of(node.in.begin(), node.in.end(), [&](const Input& other) {
        return !other.storage || other.storage->id != in.storage->id ||
               (other.window.dtype == made.window.dtype && whole(other.window, made.window, made.bytes));
      });
      // Another operand may use the owner's memory too, through a chain of in-place results; that chain must have
      // ended.
      if (!ends_here || !plain) continue;
      out->second.owner = source->second.owner;
      owner.last = out->second.last;
      break;
    }
  }

  void place() {
    std::vector<std::uint64_t> owners;
    for (const auto id : order_)
      if (temporaries_.at(id).owner == id && temporaries_.at(id).bytes) owners.push_back(id);
    std::stable_sort(owners.begin(), owners.end(),
                     [&](auto a, auto b) { return temporaries_.at(a).bytes > temporaries_.at(b).bytes; });
    std::vector<const Temporary*> placed;  // sorted by offset
    for (const auto id : owners) {
      auto& t = temporaries_.at(id);
      const std::size_t bytes = (t.bytes + 63) / 64 * 64;
      std::size_t at = 0;
      for (const auto* p : placed) {
        if (p->last < t.first || t.last < p->first) continue;
        if (at + bytes <= p->offset) break;
        at = std::max(at, p->offset + (p->bytes + 63) / 64 * 64);
      }
      t.offset = at;
      plan_->arena_bytes = std::max(plan_->arena_bytes, at + bytes);
      placed.insert(
          std::upper_bound(placed.begin(), placed.end(), &t, [](auto* a, auto* b) { return a->offset < b->offset; }),
          &t);
    }
  }

  void add_view(const std::shared_ptr<Storage>& storage, const Window& w) {
    const std::size_t view = plan_->views.size();
    plan_->views.push_back({nullptr, w.dtype, w.shape, w.strides});
    if (!storage) return;
    const auto where = place_of(storage->id);
    const auto bytes = [&](std::int64_t offset) { return std::size_t(offset) * size_bytes(w.dtype); };
    if (where.kind == Origin::Kind::input) {
      const auto base = notebook_.inputs()[where.number].impl()->window.offset;
      plan_->patches.push_back({view, {OperandMemory::Kind::input, where.number}, bytes(w.offset - base)});
    } else if (const auto out = outputs_.find(storage->id); out != outputs_.end()) {
      plan_->patches.push_back({view, {OperandMemory::Kind::output, out->second}, bytes(w.offset)});
    } else if (where.kind == Origin::Kind::born) {
      plan_->anchors.push_back(
          {view, nullptr, temporaries_.at(temporaries_.at(storage->id).owner).offset + bytes(w.offset)});
    } else {
      plan_->anchors.push_back({view, storage, bytes(w.offset)});
    }
  }

  void count_costs() {
    Profile profile;
    for (const auto& c : plan_->calls) {
      const auto* views = plan_->views.data() + c.first_view;
      const kernels::Call call{views, c.n_in, views + c.n_in, c.n_out, &c.attrs, {}, nullptr, nullptr, c.payload.get()};
      profile.add(*c.op, call, 0);
    }
    plan_->costs = profile.rows();
  }

  void emit(const Node& node) {
    plan_->calls.push_back({node.op, node.attrs, node.payload, node.random.index, plan_->views.size(),
                            int(node.in.size()), int(node.out.size()), updates(node), node.together});
    for (const auto& in : node.in) add_view(in.storage, in.window);
    for (const auto& out : node.out) add_view(out.storage.lock(), out.window);
  }

  void bind_together() {
    std::unordered_map<std::uint64_t, std::size_t> last;
    for (std::size_t i = 0; i < plan_->calls.size(); ++i) last[plan_->calls[i].together.id] = i;
    for (auto& c : plan_->calls)
      if (c.together.id) c.last_together = last[c.together.id];
  }

  const Notebook& notebook_;
  const std::vector<Tensor>& results_;
  PlanOptions options_;
  const char* results_owner_ = "results of a compiled function";
  std::vector<std::shared_ptr<Storage>> made_;  // storages created by the passes
  StorageIds made_ids_;
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
  std::unordered_map<std::uint64_t, std::size_t> outputs_;  // storage id -> index of the plan's output
  Nodes nodes_;
  Nodes live_;
  std::unordered_map<std::uint64_t, Temporary> temporaries_;
  std::vector<std::uint64_t> order_;
};

}  // namespace

Result<std::shared_ptr<Plan>> make_plan(const Notebook& notebook, const std::vector<Tensor>& results,
                                        const PlanOptions& options) {
  return Planner(notebook, results, options).run();
}

std::shared_ptr<const Error> operand_error(const Replay& replay) {
  for (const auto& in : replay.inputs)
    if (in.storage->error) return in.storage->error;
  for (const auto& anchor : replay.plan->anchors)
    if (anchor.storage && anchor.storage->error) return anchor.storage->error;
  return nullptr;
}

void fail_torn(const Replay& replay, const PlanCall& call, const std::shared_ptr<const Error>& error, bool torn) {
  if (!torn && !is_collective(call.payload.get())) return;
  const auto wrote = [&call](std::size_t view) {
    const std::size_t first = call.first_view + std::size_t(call.n_in);
    return view >= first && view < first + std::size_t(call.n_out);
  };
  for (const auto& p : replay.plan->patches)
    if (p.slot.kind == OperandMemory::Kind::input && wrote(p.view)) replay.inputs[p.slot.number].storage->error = error;
  for (const auto& a : replay.plan->anchors)
    if (a.storage && wrote(a.view)) a.storage->error = error;
}

Result<void> anchor_views(Plan& plan, device::Device& device) {
  device::Buffer& arena = *plan.arena;
  if (arena.size_bytes() < plan.arena_bytes) {
    arena.reset();
    // The cache holds buffers of the uncaptured call, whose sizes differ. Free them before allocating the arena.
    device.release_cache();
    const device::OwnedBy owner(plan.arena_owner);
    RILLE_TRY(arena, device.allocate(plan.arena_bytes));
  }
  if (plan.anchored && plan.anchored_at == arena.data()) return success();
  for (const auto& a : plan.anchors) {
    auto* base = static_cast<std::byte*>(a.storage ? a.storage->buffer.data() : arena.data());
    plan.views[a.view].data = base ? base + a.offset_bytes : nullptr;
  }
  plan.anchored = true;
  plan.anchored_at = arena.data();
  return success();
}

Result<void> run_replay(Replay& replay, LaneQueue& queue, device::Device& device, kernels::LaneState& lane) {
  Plan& plan = *replay.plan;
  const auto fail = [&](const std::shared_ptr<const Error>& error) {
    for (const auto& weak : replay.outputs)
      if (const auto storage = weak.lock()) storage->error = error;
    return success();
  };
  if (const auto error = operand_error(replay)) return fail(error);
  RILLE_CHECK(anchor_views(plan, device));
  std::vector<device::Buffer> outputs;
  outputs.reserve(replay.outputs.size());
  for (std::size_t i = 0; i < replay.outputs.size(); ++i) {
    const device::OwnedBy owner(plan.output_owners[i]);
    RILLE_TRY(auto buffer, device.allocate(plan.output_bytes[i]));
    outputs.push_back(std::move(buffer));
  }
  for (const auto& patch : plan.patches) {
    std::byte* base;
    if (patch.slot.kind == OperandMemory::Kind::input) {
      const auto& in = replay.inputs[patch.slot.number];
      base = static_cast<std::byte*>(in.storage->buffer.data());
      if (base) base += std::size_t(in.window.offset) * size_bytes(in.window.dtype);
    } else {
      base = static_cast<std::byte*>(outputs[patch.slot.number].data());
    }
    plan.views[patch.view].data = base ? base + patch.offset_bytes : nullptr;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (const auto storage = replay.outputs[i].lock()) storage->buffer = outputs[i];
  }
  char text[kernels::Call::error_bytes] = {};
  std::size_t begun = 0, bound = 0;  // the calls [begun, bound) are one group (Together) that has changed a tensor
  const auto broken_off = [&](std::size_t at, bool cut) {
    const auto why = replay.asked.work->why();
    if (cut) fail_torn(replay, plan.calls[at], why, true);
    for (std::size_t i = begun; i < at && at < bound; ++i)
      if (plan.calls[i].update && plan.calls[i].together.id == plan.calls[begun].together.id)
        fail_torn(replay, plan.calls[i], why, true);
    return fail(why);
  };
  for (std::size_t at = 0; at < plan.calls.size(); ++at) {
    const PlanCall& c = plan.calls[at];
    const bool must_run = at < bound && plan.calls[begun].together.to_the_end;
    if (!must_run && replay.asked.ended()) return broken_off(at, false);
    if (c.update && c.together.id && at >= bound) begun = at, bound = c.last_together + 1;
    const auto* views = plan.views.data() + c.first_view;
    const kernels::Call call{views,   c.n_in,   views + c.n_in,
                             c.n_out, &c.attrs, {replay.seed, replay.step, c.random_index},
                             &lane,   text,     c.payload.get()};
    const bool breaks_off = c.payload && c.payload->breaks_off();
    lane.heed((c.update && !breaks_off) || must_run ? kernels::StopSign{} : replay.asked.sign());
    queue.call(*c.op, call);
    if (lane.cut_short()) return broken_off(at, true);
    if (!text[0]) continue;
    const auto error = std::make_shared<const Error>(kernel_error(text));
    if (!queue.first_error) queue.first_error = error;
    fail_torn(replay, c, error);
    return fail(error);
  }
  return success();
}

}  // namespace rille::tensor
