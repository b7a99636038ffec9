// latest.json: what an object store has of one training's checkpoints. It names the newest one and those kept before
// it, each with its files, their sizes and SHA-256. Whoever can write to the bucket can write this file, so reading it
// checks every name, number and digest. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::transfer {

inline constexpr std::int64_t latest_bytes_max = 16 << 20;
inline constexpr std::size_t stored_checkpoints_max = 1000, stored_files_max = 1000;
inline constexpr const char* manifest_name = "manifest.json";

struct StoredFile {
  std::string name;  // a plain name: "model.safetensors"
  std::int64_t size_bytes = 0;
  std::string sha256;
  // "step-00000040-g2-e7-8a6b0c1d/model.safetensors": an earlier checkpoint sent it; "": it is in the checkpoint's
  // folder
  std::string at = {};
};

struct StoredCheckpoint {
  std::int64_t step = 0, generation = 0, epoch = 0;
  std::string folder;             // below the training's address: "step-00000050-g2-e7-1f3a9c02/"
  std::string directory;          // where its machine had it, below its work directory: "checkpoints/step-00000050"
  std::vector<StoredFile> files;  // the manifest last
};

struct Latest {
  std::string writer;     // of the newest checkpoint
  std::int64_t base = 0;  // generation of the writer before this one; its own generations count from there
  std::vector<StoredCheckpoint> checkpoints;  // newest first; empty: there is none yet
  std::string version;                        // of the object; "": there is none

  std::string to_json() const;  // readable JSON, without `version`; the member `digest` is of the other members
};
// Error integrity: not such a file, of another version, cut off, or edited. `shown`: the address in messages.
Result<Latest> read_latest(std::string_view text, std::string_view shown);

// The text to write, which read_latest reads. If it is too large, the oldest checkpoints go. Error invalid: the newest
// cannot be listed. At least one checkpoint.
Result<std::string> text_of_latest(Latest& latest, std::string_view shown);

// Whether a machine may be given the checkpoint of this step there: a path that does not lead out of the work directory
// and ends in "step-00000050".
bool is_checkpoint_directory(std::string_view path, std::int64_t step);
bool is_stored_file_name(std::string_view name);  // no folder, no leading dot

// The folder's name. `mark`: 8 hexadecimal digits that no checkpoint with other contents or another writer has.
std::string stored_folder(const StoredCheckpoint& checkpoint, std::string_view mark);
// The step, generation and epoch in a folder's name. Error invalid: this is none.
Result<StoredCheckpoint> parse_stored_folder(std::string_view folder);

// Keeps the newest `newest` checkpoints, and for ever those whose step is a multiple of `every` (0: none).
struct StoreRetention {
  int newest = 3;
  std::int64_t every = 0;
};
void retain(std::vector<StoredCheckpoint>& newest_first, const StoreRetention& rule);

}  // namespace rille::transfer
