// Plan: a traced function as a flat list of kernel calls. Replay: one call of a plan, with its input tensors and the
// storages of its new outputs.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/compute/tensor/notebook.hpp"
#include "runtime/compute/tensor/recompute.hpp"

namespace rille::tensor {

// Where the memory of an operand lies during a replay.
struct OperandMemory {
  enum class Kind : std::uint8_t { none, fixed, input, output } kind = Kind::none;
  std::size_t number = 0;  // index of the input or of the output storage
};

struct PlanCall {
  const Op* op = nullptr;
  kernels::Attrs attrs;
  std::shared_ptr<const kernels::Payload> payload;
  std::uint32_t random_index = 0;
  std::size_t first_view = 0;  // index in Plan::views of the call's first input; the outputs follow the inputs
  int n_in = 0, n_out = 0;
  bool update = false;  // changes a tensor in place
  Together together;
  std::size_t last_together = 0;  // index of the last call with the same Together::id
};

// A view whose pointer changes with every call.
struct Patch {
  std::size_t view = 0;
  OperandMemory slot;
  std::size_t offset_bytes = 0;
};

// A view whose pointer stays the same: into the arena, or into a storage made outside the function.
struct Anchor {
  std::size_t view = 0;
  std::shared_ptr<Storage> storage;  // null: the view is in the arena
  std::size_t offset_bytes = 0;
};

struct PlanOutput {
  OperandMemory slot;
  std::shared_ptr<Storage> outside;  // set if the output is a tensor made outside the function; else null
  Window window;
};

struct PlanOnDevice;

// Why a capture failed; "" if none failed. Written by the lane thread, read by other threads.
struct CaptureNote {
  std::mutex mutex;
  std::string why;
};

struct Plan {
  std::vector<PlanCall> calls;
  std::vector<kernels::View> views;
  std::vector<Patch> patches;
  std::vector<Anchor> anchors;
  std::vector<std::shared_ptr<Storage>> written;  // storages made outside that the plan writes
  std::vector<PlanOutput> outputs;
  std::vector<std::size_t> output_bytes;   // size of each output storage
  std::vector<const char*> output_owners;  // name to which each output storage is accounted (owner.hpp)
  std::size_t arena_bytes = 0, temporary_bytes = 0, recorded = 0;
  std::vector<ProfileRow> costs;  // bytes and FLOPs of the calls; times are zero
  std::uint32_t draws = 0;        // number of random operations in the trace
  const char* arena_owner = "arena of a compiled function";
  std::shared_ptr<CaptureNote> capture_note = std::make_shared<CaptureNote>();
  // Only the lane uses the following members. All recordings of a function share one arena of the size of the largest
  // plan: only one plan runs at a time, and none leaves data in the arena.
  std::shared_ptr<device::Buffer> arena = std::make_shared<device::Buffer>();
  bool anchored = false;
  const void* anchored_at = nullptr;        // address of the arena when the views were anchored
  std::shared_ptr<PlanOnDevice> on_device;  // captured calls (replay_device.cpp); null on the CPU
};

struct PlanOptions {
  Recompute recompute = Recompute::none;
  bool fuse = true;
  bool epilogues = false;  // fuse a linear product and its activation (epilogues.hpp)
};

// Error invalid: the function writes into a constant. `results` are the function's results; the plan's outputs are
// these, then the new gradients of the leaves.
Result<std::shared_ptr<Plan>> make_plan(const Notebook& notebook, const std::vector<Tensor>& results,
                                        const PlanOptions& options = {});

struct Replay {
  std::shared_ptr<Plan> plan;
  std::vector<Input> inputs;  // tensors of this call; a window's offset is added to the plan's offsets
  std::vector<std::weak_ptr<Storage>> outputs;
  std::uint64_t seed = 0, step = 0;
  Asked asked;
};

// Error memory: nothing ran. After a kernel's error no later call of the plan runs, so later writes do not happen.
Result<void> run_replay(Replay& replay, LaneQueue& queue, device::Device& device, kernels::LaneState& lane);
// Replays on a device with an executor: uncaptured the first time, then captured (replay_device.cpp).
Result<void> run_replay_on(device::Executor& executor, Replay& replay, LaneQueue& queue, device::Device& device);

// The error of the first operand that has no value; null: all operands have a value.
std::shared_ptr<const Error> operand_error(const Replay& replay);
// Marks outputs as failed. `torn`: the call has half written its tensors. A failed communicator call may have written a
// part of its tensors, so these lose their values. If any other call fails, only the new outputs lose their values.
void fail_torn(const Replay& replay, const PlanCall& call, const std::shared_ptr<const Error>& error,
               bool torn = false);
// Sets the addresses of the arena's views, again if another recording has enlarged the arena. Error memory: no arena.
Result<void> anchor_views(Plan& plan, device::Device& device);

}  // namespace rille::tensor
