// Plans on a device with an executor. Captured calls have fixed addresses. The plan therefore owns a buffer for each
// input, which is filled before a replay, and for each output, which is copied to new memory after a replay. The first
// run is uncaptured, so that everything it needs gets created; the second is captured. Calls that cannot be captured
// run uncaptured. Communication operations are never captured, only the stretches of calls between them: the ranks
// agree on each call, and running one again after a failed capture would be a call that the other ranks do not make.
#include <algorithm>

#include "runtime/compute/device/executor.hpp"
#include "runtime/compute/device/owner.hpp"
#include "runtime/compute/tensor/collective.hpp"
#include "runtime/compute/tensor/record.hpp"
#include "runtime/compute/tensor/replay.hpp"

namespace rille::tensor {

// The plan's copy of an input or output. Input: the bytes [from, to) that the plan uses, relative to the start of the
// input's window. Output: all bytes.
struct OwnPlace {
  device::Buffer memory;
  std::ptrdiff_t from = 0, to = 0;
  bool written = false;
  std::size_t bytes() const { return std::size_t(to - from); }
};

// A run of calls, [from, to), that is captured as a whole.
struct Stretch {
  std::size_t from = 0, to = 0;
  bool plain = false;  // true: these calls cannot be captured
  std::shared_ptr<device::Captured> captured;
};

struct PlanOnDevice {
  std::vector<OwnPlace> inputs, outputs;
  std::vector<Stretch> stretches;  // together they contain all calls of the plan, in order
  bool ran = false;
};

namespace {

// The bytes [first, end) of a view, relative to its first element.
std::pair<std::ptrdiff_t, std::ptrdiff_t> extent(const kernels::View& v) {
  std::ptrdiff_t low = 0, high = 0;
  for (int i = 0; i < v.shape.n; ++i) {
    if (v.shape[i] == 0) return {0, 0};
    (v.strides[i] < 0 ? low : high) += (v.shape[i] - 1) * v.strides[i];
  }
  const auto size = std::ptrdiff_t(size_bytes(v.dtype));
  return {low * size, (high + 1) * size};
}

void measure(PlanOnDevice& mine, const Plan& plan, std::size_t inputs) {
  mine.inputs.resize(inputs);
  for (const auto bytes : plan.output_bytes) mine.outputs.push_back({{}, 0, std::ptrdiff_t(bytes)});
  std::vector<bool> written(plan.views.size());
  for (const auto& c : plan.calls) std::fill_n(written.begin() + std::ptrdiff_t(c.first_view) + c.n_in, c.n_out, true);
  for (const auto& patch : plan.patches) {
    if (patch.slot.kind != OperandMemory::Kind::input) continue;
    auto& place = mine.inputs[patch.slot.number];
    const auto [low, high] = extent(plan.views[patch.view]);
    if (low == high) continue;
    const auto at = std::ptrdiff_t(patch.offset_bytes);  // may be < 0 if two inputs share a storage
    const bool fresh = place.from == place.to;
    place.from = fresh ? at + low : std::min(place.from, at + low);
    place.to = fresh ? at + high : std::max(place.to, at + high);
    place.written = place.written || written[patch.view];
  }
}

std::vector<Stretch> stretches_of(const Plan& plan) {
  std::vector<Stretch> out;
  for (std::size_t i = 0; i < plan.calls.size(); ++i) {
    const bool plain = is_collective(plan.calls[i].payload.get());
    if (out.empty() || out.back().plain != plain) out.push_back({i, i, plain, nullptr});
    out.back().to = i + 1;
  }
  return out;
}

// Allocates the plan's input and output buffers. Error memory: no buffer is kept.
Result<void> settle(Plan& plan, std::size_t inputs, device::Device& device) {
  if (plan.on_device) return success();
  auto mine = std::make_shared<PlanOnDevice>();
  measure(*mine, plan, inputs);
  mine->stretches = stretches_of(plan);
  const device::OwnedBy owner("inputs and results of a recorded graph");
  for (auto* list : {&mine->inputs, &mine->outputs}) {
    for (auto& place : *list) { RILLE_TRY(place.memory, device.allocate(place.bytes())); }
  }
  for (const auto& patch : plan.patches) {
    const auto& place =
        (patch.slot.kind == OperandMemory::Kind::input ? mine->inputs : mine->outputs)[patch.slot.number];
    auto* base = static_cast<std::byte*>(place.memory.data());
    plan.views[patch.view].data = base ? base + (std::ptrdiff_t(patch.offset_bytes) - place.from) : nullptr;
  }
  plan.on_device = std::move(mine);
  return success();
}

Result<void> copy_inputs(device::Executor& executor, const PlanOnDevice& mine, const Replay& replay, bool back) {
  for (std::size_t i = 0; i < mine.inputs.size(); ++i) {
    const auto& place = mine.inputs[i];
    if (!place.memory || (back && !place.written)) continue;
    const auto& in = replay.inputs[i];
    auto* theirs = static_cast<std::byte*>(in.storage->buffer.data()) +
                   in.window.offset * std::int64_t(size_bytes(in.window.dtype)) + place.from;
    RILLE_CHECK(back ? executor.copy(theirs, place.memory.data(), place.bytes())
                     : executor.copy(place.memory.data(), theirs, place.bytes()));
  }
  return success();
}

// `failed` is set to the call whose kernel reported an error.
Result<void> run_calls(device::Executor& executor, const Plan& plan, const Stretch& stretch, const Replay& replay,
                       LaneQueue& queue, const PlanCall*& failed) {
  char text[kernels::Call::error_bytes] = {};
  for (std::size_t i = stretch.from; i < stretch.to; ++i) {
    const PlanCall& c = plan.calls[i];
    const auto* views = plan.views.data() + c.first_view;
    const kernels::Call call{views,   c.n_in,   views + c.n_in,
                             c.n_out, &c.attrs, {replay.seed, replay.step, c.random_index},
                             nullptr, text,     c.payload.get()};
    RILLE_CHECK(queue.call_on(executor, *c.op, call));
    if (!text[0]) continue;
    failed = &c;
    return kernel_error(text);
  }
  return success();
}

void note(const Plan& plan, const Error& error) {
  const std::lock_guard lock(plan.capture_note->mutex);
  plan.capture_note->why = error.message;
}

Result<void> run_stretch(device::Executor& executor, const Plan& plan, Stretch& stretch, const Replay& replay,
                         LaneQueue& queue, const PlanCall*& failed) {
  const auto run_plainly = [&](const Error& why) {  // nothing ran: a library may refuse a capture
    stretch.plain = true;
    note(plan, why);
    return run_calls(executor, plan, stretch, replay, queue, failed);
  };
  if (!stretch.captured) {
    if (const auto begun = executor.begin_capture(); !begun) return run_plainly(begun.error());
    const auto ran = run_calls(executor, plan, stretch, replay, queue, failed);
    auto captured = executor.end_capture();
    if (!ran || !captured) return run_plainly(ran ? captured.error() : ran.error());
    stretch.captured = std::move(*captured);
  }
  return executor.replay(*stretch.captured, replay.seed, replay.step);
}

Result<void> run_plan(device::Executor& executor, const Plan& plan, const Replay& replay, LaneQueue& queue,
                      const PlanCall*& failed) {
  PlanOnDevice& mine = *plan.on_device;
  const bool plain = !mine.ran || queue.profile;
  mine.ran = true;
  for (auto& stretch : mine.stretches) {
    RILLE_CHECK(plain || stretch.plain ? run_calls(executor, plan, stretch, replay, queue, failed)
                                       : run_stretch(executor, plan, stretch, replay, queue, failed));
  }
  return success();
}

}  // namespace

Result<void> run_replay_on(device::Executor& executor, Replay& replay, LaneQueue& queue, device::Device& device) {
  Plan& plan = *replay.plan;
  const auto fail = [&](const std::shared_ptr<const Error>& error) {
    for (const auto& weak : replay.outputs)
      if (const auto storage = weak.lock()) storage->error = error;
    return success();
  };
  if (const auto error = operand_error(replay)) return fail(error);
  const void* const before = plan.anchored_at;
  RILLE_CHECK(anchor_views(plan, device));
  RILLE_CHECK(settle(plan, replay.inputs.size(), device));
  if (plan.anchored_at != before)  // captured calls contain the old addresses
    for (auto& stretch : plan.on_device->stretches) stretch.captured.reset();
  std::vector<device::Buffer> outputs(replay.outputs.size());
  std::vector<std::shared_ptr<Storage>> wanted;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    wanted.push_back(replay.outputs[i].lock());
    if (!wanted[i]) continue;
    const device::OwnedBy owner(plan.output_owners[i]);
    RILLE_TRY(outputs[i], device.allocate(plan.output_bytes[i]));
  }
  const PlanOnDevice& mine = *plan.on_device;
  auto ran = copy_inputs(executor, mine, replay, false);
  const PlanCall* failed = nullptr;
  if (ran) ran = run_plan(executor, plan, replay, queue, failed);
  if (ran) ran = copy_inputs(executor, mine, replay, true);
  for (std::size_t i = 0; ran && i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    ran = executor.copy(outputs[i].data(), mine.outputs[i].memory.data(), plan.output_bytes[i]);
  }
  if (!ran) {
    const auto error = std::make_shared<const Error>(std::move(ran).error());
    if (!queue.first_error) queue.first_error = error;
    if (failed) fail_torn(replay, *failed, error);
    return fail(error);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (wanted[i]) wanted[i]->buffer = std::move(outputs[i]);
  return success();
}

}  // namespace rille::tensor
