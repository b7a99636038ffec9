// The tensors of a checkpoint by the part of the state that they belong to ("model", "optimizer"), whichever of its
// files have them: a part may lie in several files, since each rank writes a share, and tensors that do not change stay
// in the file that has them. Blocking; any thread. Errors: io; integrity if a file is damaged, or the files together
// are not whole tensors (docs/design/checkpoints.md).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/data/checkpoint.hpp"

namespace rille::data {

using OpenFile = std::shared_ptr<const store::SafetensorsFile>;

struct StateTensor {
  struct Piece {
    OpenFile file;
    const store::TensorEntry* entry = nullptr;
    Slice slice = {};
    std::string_view bytes() const { return file->bytes(*entry); }
  };
  std::string dtype;
  std::vector<std::int64_t> shape;  // of the whole tensor
  std::vector<Piece> pieces;        // along the first dimension, so that their bytes one after another are the tensor's
};

using StatePart = std::map<std::string, StateTensor>;

// Opens the checkpoint's files. Their digests are not compared: load() did that.
Result<std::map<std::string, StatePart>> open_parts(const Checkpoint& checkpoint);
// A whole file.
StatePart part_of(const OpenFile& file);

}  // namespace rille::data
