// Plan: a traced function as a flat list of kernel calls. Replay: one call of a plan, with its inputs and fresh
// outputs.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/compute/tensor/notebook.hpp"
#include "runtime/compute/tensor/recompute.hpp"

namespace rille::tensor {

// Where an operand's memory is at a replay.
struct Slot {
  enum class Kind : std::uint8_t { none, fixed, input, output } kind = Kind::none;
  std::size_t number = 0;  // of the input or output storage
};

struct PlanCall {
  const Op* op = nullptr;
  kernels::Attrs attrs;
  std::shared_ptr<const kernels::Payload> payload;
  std::uint32_t random_index = 0;
  std::size_t first_view = 0;  // inputs, then outputs, in Plan::views
  int n_in = 0, n_out = 0;
};

// A view whose pointer changes from call to call.
struct Patch {
  std::size_t view = 0;
  Slot slot;
  std::size_t offset_bytes = 0;
};

// A view whose pointer stays the same: into the arena, or into a storage made outside.
struct Anchor {
  std::size_t view = 0;
  std::shared_ptr<Storage> storage;  // null: the arena
  std::size_t offset_bytes = 0;
};

struct PlanOutput {
  Slot slot;
  std::shared_ptr<Storage> outside;  // an output that is a tensor made outside
  Window window;
};

struct PlanOnDevice;

// The error of a capture; "": none. Written by the lane, read by others.
struct CaptureNote {
  std::mutex mutex;
  std::string why;
};

struct Plan {
  std::vector<PlanCall> calls;
  std::vector<kernels::View> views;
  std::vector<Patch> patches;
  std::vector<Anchor> anchors;
  std::vector<std::shared_ptr<Storage>> written;  // made outside and written by the plan
  std::vector<PlanOutput> outputs;
  std::vector<std::size_t> output_bytes;   // of the output storages
  std::vector<const char*> output_owners;  // of the output storages
  std::size_t arena_bytes = 0, temporary_bytes = 0, recorded = 0;
  std::vector<ProfileRow> costs;  // of the calls, without times
  std::uint32_t draws = 0;        // random operations in the trace
  const char* arena_owner = "arena of a compiled function";
  std::shared_ptr<CaptureNote> capture_note = std::make_shared<CaptureNote>();
  // The rest is touched on the lane only. All recordings of the function share the arena, which has the size of the
  // largest: only one runs at a time, and none leaves data there.
  std::shared_ptr<device::Buffer> arena = std::make_shared<device::Buffer>();
  bool anchored = false;
  const void* anchored_at = nullptr;        // the arena's address at that time
  std::shared_ptr<PlanOnDevice> on_device;  // replay_device.cpp; the CPU needs none
};

struct PlanOptions {
  Recompute recompute = Recompute::none;
  bool fuse = true;
  bool epilogues = false;  // epilogues.hpp
};

// invalid: a write into a constant. `results` are the function's; the plan's outputs end with the leaves' new
// gradients.
Result<std::shared_ptr<Plan>> make_plan(const Notebook& notebook, const std::vector<Tensor>& results,
                                        const PlanOptions& options = {});

struct Replay {
  std::shared_ptr<Plan> plan;
  std::vector<Input> inputs;  // windows give the offset
  std::vector<std::weak_ptr<Storage>> outputs;
  std::uint64_t seed = 0, step = 0;
};

// memory: nothing ran. A kernel's error ends the plan there: later writes do not happen.
Result<void> run_replay(Replay& replay, LaneQueue& queue, device::Device& device, kernels::LaneState& lane);
// The same on a device with an executor: uncaptured the first time, then captured (replay_device.cpp).
Result<void> run_replay_on(device::Executor& executor, Replay& replay, LaneQueue& queue, device::Device& device);

// The error of the first operand without a value; null: all have one.
std::shared_ptr<const Error> operand_error(const Replay& replay);
// A failed communicator call may have written part of its tensors, so they lose their values. If another call fails,
// only the fresh outputs lose theirs.
void fail_torn(const Replay& replay, const PlanCall& call, const std::shared_ptr<const Error>& error);
// memory: no arena. Sets the addresses of the fixed views, again after another recording has enlarged the arena.
Result<void> anchor_views(Plan& plan, device::Device& device);

}  // namespace rille::tensor
