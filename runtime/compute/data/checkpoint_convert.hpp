// Writes a checkpoint's tensors for other programs: as one safetensors file, or as a folder in the layout of Hugging
// Face's hub, which torch.distributed.checkpoint's HuggingFaceStorageReader, transformers and vLLM read:
// model-0000N-of-0000M.safetensors and model.safetensors.index.json. Slices are joined; each tensor is in one file.
// Blocking; any thread.
#pragma once

#include "runtime/compute/data/checkpoint.hpp"

namespace rille::data {

struct Converted {
  std::int64_t tensors = 0, files = 0, size_bytes = 0;
};

// A file of the folder gets no further tensor beyond this size, as the hub recommends.
inline constexpr std::int64_t converted_bytes_max = 5'000'000'000;

// `to`: the file to make or replace, ending in .safetensors; else a folder that is new or empty, since readers take
// every file in it. Tensors of the part `model` keep their names; those of another part have its name before theirs:
// "optimizer.exp_avg.weight". The result appears when it is complete. Errors: io; invalid if the folder has files, or
// two tensors have one name; integrity as open_parts.
Result<Converted> convert_checkpoint(const Checkpoint& from, const std::string& to,
                                     std::int64_t file_bytes_max = converted_bytes_max);

}  // namespace rille::data
