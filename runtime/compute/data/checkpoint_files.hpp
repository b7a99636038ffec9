// Writes the files of one part of a checkpoint, or of one rank's share of it. Tensors whose bytes the checkpoint before
// has are not written: its file with them gets a second name here (a hard link), so that each checkpoint's folder is
// whole by itself and retention needs no count of uses. A file with newer and older values lists those that count.
// Blocking: call it on a thread job.
#pragma once

#include <string>
#include <vector>

#include "runtime/compute/data/checkpoint.hpp"

namespace rille::data {

struct PartFiles {
  std::string directory;  // of the unfinished checkpoint: CheckpointWriter::directory()
  std::string part;       // "model"
  std::string share;      // "rank-1-of-4"; "": the whole part, in plain files
};

// A file of the checkpoint before is kept if at least a quarter of its bytes still count, else they are written again.
// `before`: may be null. Error io.
Result<std::vector<CheckpointFile>> write_part(const PartFiles& to, const std::vector<StateSource>& tensors,
                                               const Checkpoint* before);

}  // namespace rille::data
