// Checkpoints. A store is a directory of checkpoints "step-00000050/", each with one or more .safetensors files and a
// manifest.json with their sizes and digests. A checkpoint is built in a hidden sibling directory, its manifest is
// written last, and one rename publishes it, so that it is complete or absent. `latest` is found by reading complete
// manifests, not from a pointer that could be torn. Works on views of bytes, without tensors. Checkpoints are ordered
// by (generation, epoch, step), so that work after a resume from an older step counts as newer. Writing blocks: call it
// from a thread job. Any number of readers and writers, also in several processes. Errors: io (disk; earlier
// checkpoints are unchanged and the unfinished one is removed), integrity (torn or foreign files; names the newest good
// checkpoint before it), state (an older generation or epoch tries to publish).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/store/safetensors.hpp"

namespace rille::data {

struct CheckpointFile {
  std::string name;  // "model.safetensors"; no directory part
  store::Fingerprint fingerprint;
};

struct Manifest {
  std::int64_t step = 0;
  std::int64_t generation = 0;  // of the lease that wrote it
  std::int64_t epoch = 0;       // fencing epoch of the runner
  std::int64_t created_us = 0;  // wall time; for people
  Value cursor, rng,
      schedule;    // the data set's position, random state, learning-rate schedule and loss scale
  Value metadata;  // other data
  std::vector<CheckpointFile> files;

  std::string to_json() const;  // readable JSON; one member is a digest of the others
  // integrity: not a manifest, an unsupported version, torn, or edited.
  static Result<Manifest> from_json(std::string_view text, std::string_view shown);
};

// Keeps the newest `keep` checkpoints, and permanently those whose step is a multiple of `every` (0: none). The newest
// is never removed.
struct Retention {
  int keep = 3;
  std::int64_t every = 0;
};

enum class Verify { sizes, digests };

// A complete checkpoint.
struct Checkpoint {
  std::string directory;
  Manifest manifest;
  // Opens a file and checks it against the manifest. integrity names the file and the fault.
  Result<store::SafetensorsFile> open(std::string_view file_name, Verify how = Verify::digests) const;
};

class CheckpointStore;

// An unfinished checkpoint. Its destructor removes it unless it was published.
class CheckpointWriter {
 public:
  CheckpointWriter(CheckpointWriter&& o) noexcept;
  ~CheckpointWriter();
  // Writes the file `name`, which must end in .safetensors.
  Result<> write(const std::string& name, const std::vector<store::TensorSource>& tensors,
                 const store::StringMap& metadata = {}, bool with_sha256 = false);
  // Registers a file that another rank wrote into directory().
  Result<> add(CheckpointFile file);
  const std::string& directory() const { return temporary_; }
  // Writes the manifest and publishes the checkpoint. Sets `manifest.step` and `.files`. Replaces a checkpoint of the
  // same step. state: `latest` has a newer generation or epoch, so an older machine never replaces it.
  Result<Checkpoint> publish(Manifest manifest);

 private:
  friend class CheckpointStore;
  CheckpointWriter(std::string root, std::string temporary, std::int64_t step, store::Fd lock)
      : root_(std::move(root)), temporary_(std::move(temporary)), step_(step), lock_(std::move(lock)) {}
  Result<> check_name(const std::string& name) const;
  std::string root_, temporary_;
  std::int64_t step_;
  store::Fd lock_;  // held while the directory is built; the kernel releases it after a crash
  std::vector<CheckpointFile> files_;
};

class CheckpointStore {
 public:
  explicit CheckpointStore(std::string root) : root_(std::move(root)) {}
  const std::string& root() const { return root_; }

  // Creates the root if needed and removes leftovers of crashed writers.
  Result<CheckpointWriter> begin(std::int64_t step) const;
  // The complete checkpoints (valid manifest, all files with their sizes), oldest first.
  Result<std::vector<Checkpoint>> list() const;
  // The newest of list(); nullopt when there is none.
  Result<std::optional<Checkpoint>> latest() const;
  // Whether there is any checkpoint, even a damaged one: then a training must not silently start over.
  Result<bool> any() const;
  // The checkpoint of a step, fully verified. integrity: names the fault and the good checkpoint before it. state:
  // there is none of that step.
  Result<Checkpoint> load(std::int64_t step) const;
  // The newest checkpoint with correct digests. With strict, a fault in the newest directory is the error of load();
  // otherwise faulty ones are skipped and described in `skipped`. integrity: all are faulty; the cause is the fault of
  // the newest. state: there is none.
  Result<Checkpoint> load_latest(bool strict = false, std::vector<Error>* skipped = nullptr) const;
  // Removes the complete checkpoints that the rule does not keep, and returns their steps. Damaged ones are kept for
  // inspection.
  Result<std::vector<std::int64_t>> retain(const Retention& rule) const;

 private:
  std::string root_;
};

// "step-00000050"
std::string checkpoint_name(std::int64_t step);
// A plain, visible name that ends in .safetensors, as required in a manifest.
bool is_checkpoint_file_name(std::string_view name);

}  // namespace rille::data
