// StoredCheckpoints: the checkpoints of one training in an object store.
//
//   s3://bucket/run/train/latest.json                                     see latest_file.hpp
//   s3://bucket/run/train/step-00000050-g2-e7-1f3a9c02/model.safetensors  and so on, and manifest.json
//
// A checkpoint's files are sent first, its manifest after them, and last latest.json takes the place of the version
// that was read, so that latest.json always names whole checkpoints. A file that a checkpoint there has already, by its
// SHA-256, is not sent again: latest.json says where it is. No two checkpoints share a folder, and a file goes only
// when latest.json no longer names it. An attempt that ends halfway leaves a folder that a later add() removes.
//
// Writers are ordered by (generation, epoch). A writer's generations count from the one whose checkpoint it goes on
// from (follow), else from the one that it found at its first look: so a training that is started anew, by another run
// or on another machine, is newer than all that wrote before it. What a newer writer has published is never replaced.
// Stores that know no conditional put (traits) are read just before they are written instead: there, two writers within
// that moment are not told apart.
//
// Errors: those of the store; integrity (latest.json or a checkpoint is damaged or foreign); state (a newer writer has
// taken over). Loop thread only. One add() at a time. An object must outlive its tasks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/base/use.hpp"
#include "runtime/core/store/objects/object_store.hpp"
#include "runtime/core/store/objects/url.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/transfer/latest_file.hpp"

namespace rille::transfer {

class StoredCheckpoints {
 public:
  // `prefix`: of the training's keys; ends in "/". `writer`: names the work that adds checkpoints, over its processes;
  // no other work anywhere has this name.
  StoredCheckpoints(std::unique_ptr<objects::ObjectStore> store, Loop& loop, std::string prefix, std::string writer,
                    std::int64_t epoch)
      : store_(std::move(store)), loop_(loop), prefix_(std::move(prefix)), writer_(std::move(writer)), epoch_(epoch) {}

  objects::ObjectStore& store() { return *store_; }
  Loop& loop() { return loop_; }
  std::string address(const std::string& below = "") const { return store_->address(prefix_ + below); }
  std::string key(const StoredCheckpoint& c, const StoredFile& f) const {
    return prefix_ + (f.at.empty() ? c.folder + f.name : f.at);
  }

  Async<Latest> read(CancelToken token);
  // The generation from which this writer's count: after a read; set before it, that of an earlier process of the
  // writer.
  std::int64_t base() const { return base_.value_or(0); }
  void count_from(std::int64_t base) { base_ = base; }
  void follow(const Latest& latest);  // the writer goes on from the newest one there
  // Whether the newest checkpoint is of this writer and of its machine with this generation.
  bool made_by(const Latest& latest, std::int64_t generation) const;

  // Sends a checkpoint with `send`, file by file, and publishes it. `made`: its step, files, directory, and the
  // generation of its machine; returned as it is stored.
  using Send = std::function<Async<>(StoredFile file, std::string key, CancelToken token)>;
  Async<StoredCheckpoint> add(StoredCheckpoint made, StoreRetention rule, Send send, CancelToken token);

  // Brings the newest good checkpoint with `take`, file by file, the manifest last. Damaged ones are passed over.
  // nullopt: there is none. Error integrity: all are damaged; the cause is the fault of the newest.
  using Take = std::function<Async<>(StoredCheckpoint from, StoredFile file, std::string version, CancelToken token)>;
  struct Found {
    StoredCheckpoint checkpoint;
    std::vector<Error> skipped;  // what is wrong with newer ones; the hint names the good one before
  };
  Async<std::optional<Found>> newest(Latest latest, Take take, CancelToken token);

 private:
  Result<> may_follow(const Latest& before, std::int64_t generation) const;
  Async<> refer(StoredCheckpoint& made, const Latest& before, CancelToken token);
  Async<> send_next(const StoredCheckpoint& made, const Send& send, std::size_t& next, std::size_t count,
                    CancelToken token);
  Async<> send_all(const StoredCheckpoint& made, const Send& send, CancelToken token);
  Async<Latest> publish(StoredCheckpoint made, StoreRetention rule, CancelToken token);
  Async<> sweep(Latest now, StoreRetention rule, CancelToken token);
  Async<> remove_folder(std::string folder, const std::set<std::string>& kept, CancelToken token);
  Async<> take_all(StoredCheckpoint from, Take take, CancelToken token);

  std::unique_ptr<objects::ObjectStore> store_;
  Loop& loop_;
  std::string prefix_, writer_;
  std::int64_t epoch_;
  std::optional<std::int64_t> base_;
};

// `address`: "s3://bucket/run/"; `name`: the training's.
Result<std::shared_ptr<StoredCheckpoints>> open_stored_checkpoints(
    const std::string& address, const std::string& name, Loop& loop,
    std::function<Result<>(const std::string& host, const std::string& port)> may_connect, std::string writer,
    std::int64_t epoch);

// The files of a checkpoint's directory on this machine, the manifest last. Blocking: call it on a thread job.
Result<std::vector<StoredFile>> files_here(const std::string& directory);
// Sends a file of this machine.
Async<> send_here(StoredCheckpoints& stored, std::string path, std::string key, CancelToken token);
// Brings one file of a checkpoint into a folder of this machine, and verifies it.
Async<> take_file(StoredCheckpoints& stored, StoredCheckpoint from, StoredFile file, std::string folder, Room room,
                  CancelToken token);
// Reads one file of a checkpoint, in this version, and compares its SHA-256.
Async<> verify_file(StoredCheckpoints& stored, StoredCheckpoint from, StoredFile file, std::string version,
                    CancelToken token);
// A machine sends a file of its work directory to the store, and fetches one from there, at signed addresses.
Async<> push_file(StoredCheckpoints& stored, std::shared_ptr<agent::AgentClient> agent, std::string path,
                  StoredFile file, std::string key, CancelToken token);
Async<> pull_file(StoredCheckpoints& stored, std::shared_ptr<agent::AgentClient> agent, std::string path,
                  StoredFile file, std::string key, std::string version, CancelToken token);
// The files of a checkpoint's directory on a machine, the manifest last.
Async<std::vector<StoredFile>> files_there(std::shared_ptr<agent::AgentClient> agent, std::string directory,
                                           CancelToken token);

}  // namespace rille::transfer
