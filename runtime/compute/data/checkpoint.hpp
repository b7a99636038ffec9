// Checkpoints. A store is a directory of checkpoints "step-00000050/", each one or more .safetensors files
// and a manifest.json that says what they should be. A checkpoint is built in a hidden sibling directory, its
// manifest is written last, and one rename publishes it, so that it is there whole or not at all. `latest` is
// found by looking at complete manifests, never by a pointer that could tear. Works on views of bytes; knows
// no tensors. Checkpoints are ordered by (generation, epoch, step), so that work done after a resume from an
// older step counts as newer. Writing blocks: call it from a thread job. Any number of readers and writers,
// also of several processes. Errors: io (disk; the checkpoints that stood before are untouched and the
// unfinished one is removed), integrity (torn or foreign files, naming the newest good checkpoint before it),
// state (an older generation or epoch tries to publish).
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
  Value metadata;  // anything else
  std::vector<CheckpointFile> files;

  std::string to_json() const;  // for people to read; has a digest of the rest among its members
  // integrity: not a manifest, a foreign version, torn, or edited.
  static Result<Manifest> from_json(std::string_view text, std::string_view shown);
};

// Keeps the newest `keep` checkpoints, and for ever those whose step is a multiple of `every` (0: none).
// The newest is never removed.
struct Retention {
  int keep = 3;
  std::int64_t every = 0;
};

enum class Verify { sizes, digests };

// One checkpoint that has been found complete.
struct Checkpoint {
  std::string directory;
  Manifest manifest;
  // The file, checked against the manifest. integrity names the file and the fault.
  Result<store::SafetensorsFile> open(std::string_view file_name, Verify how = Verify::digests) const;
};

class CheckpointStore;

// An unfinished checkpoint. Destroying it unpublished removes it.
class CheckpointWriter {
 public:
  CheckpointWriter(CheckpointWriter&& o) noexcept;
  ~CheckpointWriter();
  // Writes "<name>" (which ends in .safetensors).
  Result<> write(const std::string& name, const std::vector<store::TensorSource>& tensors,
                 const store::StringMap& metadata = {}, bool with_sha256 = false);
  // Takes in a file that another rank wrote into directory() itself.
  Result<> add(CheckpointFile file);
  const std::string& directory() const { return temporary_; }
  // Writes the manifest and publishes. `manifest.step` and `.files` are filled in here. A checkpoint of the
  // same step is replaced. state: `latest` bears a newer generation or epoch, so that an older machine never
  // replaces it.
  Result<Checkpoint> publish(Manifest manifest);

 private:
  friend class CheckpointStore;
  CheckpointWriter(std::string root, std::string temporary, std::int64_t step, store::Fd lock)
      : root_(std::move(root)), temporary_(std::move(temporary)), step_(step), lock_(std::move(lock)) {}
  Result<> check_name(const std::string& name) const;
  std::string root_, temporary_;
  std::int64_t step_;
  store::Fd lock_;  // held while the directory is being built; a crash lets go of it
  std::vector<CheckpointFile> files_;
};

class CheckpointStore {
 public:
  explicit CheckpointStore(std::string root) : root_(std::move(root)) {}
  const std::string& root() const { return root_; }

  // Makes the root when needed and clears away what crashed writers left.
  Result<CheckpointWriter> begin(std::int64_t step) const;
  // The complete checkpoints (manifest sound, every file there with its size), oldest first.
  Result<std::vector<Checkpoint>> list() const;
  // The newest of list(); nullopt when there is none.
  Result<std::optional<Checkpoint>> latest() const;
  // Whether there is a checkpoint, perhaps a damaged one: whoever finds any must not begin anew in silence.
  Result<bool> any() const;
  // A checkpoint by step, all of it verified. integrity: names the fault and the good one before it. state:
  // none of that step.
  Result<Checkpoint> load(std::int64_t step) const;
  // The newest checkpoint whose every byte is right. With strict, a fault in the newest directory is the
  // error of load(); otherwise faulty ones are passed over and described in `skipped`. integrity: all are faulty; the
  // cause is what is wrong with the newest. state: there is none.
  Result<Checkpoint> load_latest(bool strict = false, std::vector<Error>* skipped = nullptr) const;
  // Removes the complete checkpoints that the rule does not keep. Damaged ones stay for people to look at.
  // The steps removed.
  Result<std::vector<std::int64_t>> retain(const Retention& rule) const;

 private:
  std::string root_;
};

// "step-00000050"
std::string checkpoint_name(std::int64_t step);
// A plain, visible name that ends in .safetensors: what a manifest may list.
bool is_checkpoint_file_name(std::string_view name);

}  // namespace rille::data
