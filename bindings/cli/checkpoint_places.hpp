// Where the commands of `rille checkpoint` find checkpoints: a folder of them, a training's in an object store, or one
// of these.
#pragma once

#include <memory>
#include <string>

#include "runtime/compute/data/checkpoint.hpp"
#include "runtime/core/loop/cancel.hpp"
#include "runtime/core/loop/task.hpp"
#include "runtime/workflow/transfer/stored_checkpoints.hpp"

namespace rille::cli {

struct FolderPlace {
  data::CheckpointStore store;
  std::int64_t only = -1;  // the step of the one that was named; -1: the folder
};
// Blocking. Error io: there is no such folder.
Result<FolderPlace> folder_place(const std::string& place);

struct StorePlace {
  std::shared_ptr<transfer::StoredCheckpoints> stored;
  std::string only;  // "step-00000050-g1-e0-1f3a9c02/": the one that was named; "": the training's address
};
// `writer`: of what is added there; "": nothing is.
Result<StorePlace> store_place(Loop& loop, const std::string& address, const std::string& writer = "");

// The step in "step-00000050"; -1: another name.
std::int64_t step_in(const std::string& name);
Error no_checkpoint_in(const std::string& place, bool in_store);

// One checkpoint: the one that `place` names, else the newest there.
struct ChosenCheckpoint {
  std::int64_t step = 0;
  std::string shown;                                    // its folder or address
  data::Checkpoint here;                                // in a folder: verified
  std::shared_ptr<transfer::StoredCheckpoints> stored;  // in a store; else null
  transfer::StoredCheckpoint there;
};
// In a folder, `place` may also be a folder of another name that has a checkpoint's files, as box:get makes it. Error
// integrity: it is damaged; state: there is none.
Async<ChosenCheckpoint> choose_checkpoint(Loop& loop, std::string place, CancelToken token);
// Brings its files into a folder that exists, and verifies them.
Async<data::Checkpoint> bring_checkpoint(Loop& loop, ChosenCheckpoint chosen, std::string folder, CancelToken token);

}  // namespace rille::cli
