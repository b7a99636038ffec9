// Checkpoints that are written on a background thread while the training goes on: what a whole checkpoint
// (checkpoint.cpp) and one of ranks' shares (checkpoint_shares.cpp) have in common.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "bindings/lua/compute/snapshot.hpp"
#include "runtime/compute/data/checkpoint.hpp"

namespace rille::lua {

struct CheckpointPlan {
  std::string root;
  std::int64_t step = 0;
  data::Manifest manifest;
  data::Retention keep;
};

// Reads { directory=, step=, keep=, keep_every=, cursor=, rng=, metadata= }. Error denied: without a grant to write the
// directory.
Result<CheckpointPlan> checkpoint_plan(lua_State* L, int options);
// Counts the files that are about to be written against the limit `disk_bytes`: the tensors, their rows in the header,
// and what else is kept as JSON.
Result<> count_files(lua_State* L, const std::vector<Snapshot::Entry>& entries,
                     std::initializer_list<const Value*> others);
// The snapshot's tensors by their part; it must outlive them.
std::map<std::string, std::vector<data::StateSource>> parts_of(const std::vector<Snapshot::Entry>& entries);
// Publishes a checkpoint with what was written, and removes older ones. Blocking. Gives { step=, directory=,
// size_bytes= }.
Result<Value> publish_checkpoint(data::CheckpointWriter& writer, const CheckpointPlan& plan);
// Starts the job and pushes its handle, for checkpoint_poll and checkpoint_wait.
int begin_write(lua_State* L, std::function<Result<Value>()> job);

void add_share_natives(lua_State* L);

}  // namespace rille::lua
