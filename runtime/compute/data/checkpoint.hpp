// Checkpoints. A store is a directory of checkpoints "step-00000050/", each with one or more .safetensors files and a
// manifest.json with the files' sizes and digests. A checkpoint is built in a hidden sibling directory, its manifest
// is written last, and one rename publishes it, so that a checkpoint is complete or absent. The latest checkpoint is
// found by reading complete manifests, not from a pointer file that a crash could damage. Works on views of bytes,
// without tensors. Checkpoints are ordered by (generation, epoch, step), so that work after a resume from an older
// step counts as newer. Writing blocks: call it on a thread job. Any number of processes may read and write. Errors:
// io (disk; earlier checkpoints are unchanged and the unfinished one is removed), integrity (damaged or foreign
// files; names the newest good checkpoint before the damaged one), state (a machine of an older generation or epoch
// tries to publish).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/store/safetensors.hpp"

namespace rille::data {

// A slice of a tensor along its first dimension.
struct Slice {
  std::int64_t first = 0, of = 0;  // its first row, and the rows of the whole tensor
  friend bool operator==(const Slice&, const Slice&) = default;
};

// A file of a checkpoint. Plain: it has a whole part of the state, and is named after it. A share that one of several
// ranks wrote says which part it belongs to, and which of its tensors are slices. A file that an earlier checkpoint
// has, too, lists the tensors that still count: newer values of the others are in another file.
struct CheckpointFile {
  std::string name;  // "model.safetensors"; without a directory
  store::Fingerprint fingerprint;
  std::string part = {};                                // "model"; "": the name without .safetensors
  std::optional<std::vector<std::string>> counts = {};  // nullopt: all its tensors
  std::map<std::string, Slice> slices = {};             // by tensor; the other tensors are whole

  std::string part_name() const;
  bool plain() const { return part.empty() && !counts && slices.empty(); }
};

struct Manifest {
  std::int64_t step = 0;
  std::int64_t generation = 0;  // generation of the lease whose machine wrote the checkpoint
  std::int64_t epoch = 0;       // fencing epoch of the process that ran the workflow
  std::int64_t created_us = 0;  // wall-clock time in microseconds; only shown to people
  Value cursor, rng,
      schedule;    // data set's position; random state; learning-rate schedule and loss scale
  Value metadata;  // data that the script adds
  std::vector<CheckpointFile> files;

  std::string to_json() const;  // readable JSON; the member `digest` is computed from the other members
  // integrity: not a manifest, an unsupported version, truncated, or edited. `shown`: the path in error messages.
  static Result<Manifest> from_json(std::string_view text, std::string_view shown);
};

// Keeps the newest `keep` checkpoints, and permanently those whose step is a multiple of `every` (0: none). The
// newest checkpoint is never removed.
struct Retention {
  int keep = 3;
  std::int64_t every = 0;
};

enum class Verify { sizes, digests };

// A published checkpoint: the manifest is valid and all files exist.
struct Checkpoint {
  std::string directory;
  Manifest manifest;
  // Opens one of the checkpoint's files and checks it against the manifest. Error integrity names the file and the
  // fault.
  Result<store::SafetensorsFile> open(std::string_view file_name, Verify how = Verify::digests) const;
};

// A tensor of the state, or some of its rows.
struct StateSource {
  store::TensorSource tensor;  // its bytes are in memory
  std::optional<Slice> slice = {};
};

class CheckpointStore;

// A checkpoint that is being written. Unless it was published, the destructor removes it.
class CheckpointWriter {
 public:
  CheckpointWriter(CheckpointWriter&& o) noexcept;
  ~CheckpointWriter();
  // Writes a part of the state, but for tensors that did not change since the checkpoint `before`
  // (checkpoint_files.hpp).
  Result<> write(const std::string& part, const std::vector<StateSource>& tensors, const Checkpoint* before = nullptr);
  // Adds a file to the manifest that another rank wrote into directory().
  Result<> add(CheckpointFile file);
  const std::string& directory() const { return temporary_; }
  // Writes the manifest and publishes the checkpoint. Sets `manifest.step` and `manifest.files`. Replaces an earlier
  // checkpoint of the step. state: the latest checkpoint has a newer generation or epoch, so an older machine never
  // replaces it.
  Result<Checkpoint> publish(Manifest manifest);

 private:
  friend class CheckpointStore;
  CheckpointWriter(std::string root, std::string temporary, std::int64_t step, store::Fd lock)
      : root_(std::move(root)), temporary_(std::move(temporary)), step_(step), lock_(std::move(lock)) {}
  Result<> check_name(const std::string& name) const;
  std::string root_, temporary_;
  std::int64_t step_;
  store::Fd lock_;  // locked while the directory is built; after a crash the kernel releases the lock
  std::vector<CheckpointFile> files_;
};

class CheckpointStore {
 public:
  explicit CheckpointStore(std::string root) : root_(std::move(root)) {}
  const std::string& root() const { return root_; }

  // Starts a checkpoint. Creates the store's directory if needed and removes leftovers of crashed writers.
  Result<CheckpointWriter> begin(std::int64_t step) const;
  // Returns the complete checkpoints, oldest first. Complete: the manifest is valid and all files have the right
  // sizes.
  Result<std::vector<Checkpoint>> list() const;
  // The newest of list(); nullopt: list() is empty.
  Result<std::optional<Checkpoint>> latest() const;
  // Whether there is any checkpoint, even a damaged one: then a training must not silently start from the beginning.
  Result<bool> any() const;
  // Loads the checkpoint of a step after checking all digests. integrity: the checkpoint is damaged; the error names
  // the fault and the good checkpoint before it. state: there is no checkpoint of that step.
  Result<Checkpoint> load(std::int64_t step) const;
  // Loads the newest checkpoint with correct digests. strict: if the newest checkpoint is damaged, returns the error
  // that load() returns; otherwise damaged checkpoints are skipped and described in `skipped`. integrity: all are
  // damaged; the error's cause is the fault of the newest. state: there is no checkpoint.
  Result<Checkpoint> load_latest(bool strict = false, std::vector<Error>* skipped = nullptr) const;
  // Removes the complete checkpoints that `rule` does not keep, and returns their steps. Damaged checkpoints are kept
  // for inspection.
  Result<std::vector<std::int64_t>> retain(const Retention& rule) const;

 private:
  std::string root_;
};

// Loads the checkpoint in this directory, whatever its name is, after checking all digests. Error integrity: it is
// none, or is damaged.
Result<Checkpoint> load_checkpoint(const std::string& directory);
// Makes the link "latest" in the checkpoints' directory, for people and box:get; Rille reads the manifests instead.
void link_latest(const std::string& root, std::int64_t step);
// The directory name of a step's checkpoint: "step-00000050".
std::string checkpoint_name(std::int64_t step);
// Whether a manifest may contain the name: no directory part, no leading dot, and the ending .safetensors.
bool is_checkpoint_file_name(std::string_view name);

}  // namespace rille::data
