// `rille checkpoint ls` and `rille checkpoint verify`: the checkpoints in a folder, or of a training in a store.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bindings/cli/checkpoint_places.hpp"
#include "bindings/cli/command.hpp"
#include "bindings/cli/fit.hpp"
#include "bindings/cli/interrupt.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/loop/thread_job.hpp"

namespace rille::cli {

namespace fs = std::filesystem;

namespace {

struct FoundCheckpoint {
  std::int64_t step = 0, files = 0, size_bytes = 0;
  std::string place;
  std::optional<Error> fault = {};
};
using FoundCheckpoints = std::vector<FoundCheckpoint>;

FoundCheckpoint look_at_step(const data::CheckpointStore& store, const std::vector<data::Checkpoint>& complete,
                             std::int64_t step, bool digests) {
  FoundCheckpoint out{step, 0, 0, store.root() + "/" + data::checkpoint_name(step)};
  const auto found = std::find_if(complete.begin(), complete.end(),
                                  [&](const data::Checkpoint& c) { return c.manifest.step == step; });
  const bool is_complete = found != complete.end();
  if (is_complete) {
    out.files = static_cast<std::int64_t>(found->manifest.files.size());
    for (const data::CheckpointFile& file : found->manifest.files) out.size_bytes += file.fingerprint.size_bytes;
  }
  if (is_complete && !digests) return out;
  if (Result<data::Checkpoint> sound = store.load(step); !sound) out.fault = sound.error();
  return out;
}

// A folder of another name that has a checkpoint's files, as box:get makes it. Its digests are checked in any case.
Result<FoundCheckpoints> look_at_one(const std::string& place) {
  RILLE_TRY(const data::Checkpoint one, data::load_checkpoint(place));
  FoundCheckpoint out{one.manifest.step, static_cast<std::int64_t>(one.manifest.files.size()), 0, place};
  for (const data::CheckpointFile& file : one.manifest.files) out.size_bytes += file.fingerprint.size_bytes;
  return FoundCheckpoints{out};
}

// `place`: a folder of checkpoints, or one checkpoint.
Result<FoundCheckpoints> look_in_folder(const std::string& place, bool digests) {
  std::error_code none;
  const fs::path real = fs::canonical(place, none);
  if (step_in(real.filename().string()) < 0 && fs::exists(real / "manifest.json", none))
    return look_at_one(real.string());
  RILLE_TRY(const FolderPlace found, folder_place(place));
  const data::CheckpointStore& store = found.store;
  RILLE_TRY(const std::vector<data::Checkpoint> complete, store.list());
  FoundCheckpoints out;
  std::error_code failed;
  for (fs::directory_iterator it(store.root(), failed), end; !failed && it != end; it.increment(failed)) {
    const std::int64_t step = step_in(it->path().filename().string());
    if (step >= 0 && (found.only < 0 || step == found.only))
      out.push_back(look_at_step(store, complete, step, digests));
  }
  if (failed) return errno_error("cannot list", store.root(), failed.value());
  if (out.empty()) return no_checkpoint_in(place, false);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.step > b.step; });
  return out;
}

// Brings one checkpoint's bytes here, and compares their SHA-256.
Async<> verify_stored(std::shared_ptr<transfer::StoredCheckpoints> stored, transfer::StoredCheckpoint one,
                      CancelToken token) {
  const transfer::StoredCheckpoints::Take take = [stored](transfer::StoredCheckpoint from, transfer::StoredFile file,
                                                          std::string version, CancelToken t) {
    return transfer::verify_file(*stored, std::move(from), std::move(file), std::move(version), std::move(t));
  };
  transfer::Latest alone;
  alone.checkpoints.push_back(std::move(one));
  const auto found = co_await stored->newest(std::move(alone), take, token);
  if (found) co_return success();
  co_return found.error().cause ? *found.error().cause : found.error();
}

// `address`: of a training's checkpoints, or of one of them.
Async<FoundCheckpoints> look_in_store(Loop& loop, std::string address, bool digests, CancelToken token) {
  RILLE_CO_TRY(const StorePlace place, store_place(loop, address));
  const std::shared_ptr<transfer::StoredCheckpoints> stored = place.stored;
  RILLE_CO_TRY(const transfer::Latest latest, co_await stored->read(token));
  FoundCheckpoints out;
  for (const transfer::StoredCheckpoint& one : latest.checkpoints) {
    if (!place.only.empty() && one.folder != place.only) continue;
    FoundCheckpoint row{one.step, static_cast<std::int64_t>(one.files.size()), 0, stored->address(one.folder)};
    for (const transfer::StoredFile& file : one.files) row.size_bytes += file.size_bytes;
    if (digests) {
      Result<> sound = co_await verify_stored(stored, one, token);
      if (!sound && sound.error().kind != ErrorKind::integrity) co_return std::move(sound).error();
      if (!sound) row.fault = sound.error();
    }
    out.push_back(std::move(row));
  }
  if (out.empty()) co_return no_checkpoint_in(address, true);
  co_return out;
}

Async<FoundCheckpoints> look(Loop& loop, std::string place, bool digests, CancelToken token) {
  if (objects::is_object_url(place)) co_return co_await look_in_store(loop, place, digests, std::move(token));
  const std::function<Result<FoundCheckpoints>()> job = [place, digests] { return look_in_folder(place, digests); };
  co_return co_await thread_job(loop, job);
}

struct CheckpointListCommand : Command {
  std::string place;
  bool digests = false;
  void declare(Options& o) override {
    o.option("PLACE", place, "a folder with checkpoints, or an address such as s3://bucket/run/train/").required();
  }
  Exit run(App& app) override;
};

struct CheckpointVerifyCommand final : CheckpointListCommand {
  CheckpointVerifyCommand() { digests = true; }
};

struct CheckpointCommand final : Command {
  Exit run(App& app) override {
    return fail_usage(app, make_error(ErrorKind::invalid, "rille checkpoint: a command is missing",
                                      "one of ls PLACE, verify PLACE, cp FROM TO, convert FROM TO"));
  }
};

Exit CheckpointListCommand::run(App& app) {
  CancelSource cancel;
  const auto stop = [&cancel](int) { cancel.cancel(make_error(ErrorKind::cancelled, "interrupted")); };
  const Interrupts interrupts(
      *app.loop, [](void*) {}, nullptr, stop, stop);
  const Result<FoundCheckpoints> found = run_blocking(*app.loop, look(*app.loop, place, digests, cancel.token()));
  if (!found) return fail(app, found.error());
  Value::Array values;
  std::vector<std::vector<std::string>> rows{{"STEP", "FILES", "SIZE", "STATE", "PLACE"}};
  bool damaged = false;
  for (const FoundCheckpoint& one : *found) {
    const char* state = one.fault ? "damaged" : digests ? "whole" : "complete";
    damaged = damaged || one.fault;
    Value v = Value().set("step", one.step).set("files", one.files).set("bytes", one.size_bytes);
    v.set("state", state).set("place", one.place);
    if (one.fault) v.set("fault", one.fault->message);
    values.push_back(std::move(v));
    rows.push_back(
        {std::to_string(one.step), std::to_string(one.files), format_size_bytes(one.size_bytes), state, one.place});
  }
  if (app.json) app.terminal.out(Value(std::move(values)).to_json_pretty() + "\n");
  else app.terminal.out(fit_table(app.terminal, std::move(rows), {{"PLACE", 30}}));
  for (const FoundCheckpoint& one : *found)
    if (one.fault && !app.json) app.terminal.note(one.fault->message);
  return damaged && digests ? Exit::script : Exit::ok;
}

const Registered<CheckpointCommand> checkpoint_row({Group::machines, "checkpoint",
                                                    "checkpoints in folders and stores: ls, verify, cp, convert",
                                                    Opens::nothing});
const Registered<CheckpointListCommand> checkpoint_list_row({Group::machines, "checkpoint ls", "list checkpoints",
                                                             Opens::nothing});
const Registered<CheckpointVerifyCommand> checkpoint_verify_row({Group::machines, "checkpoint verify",
                                                                 "read checkpoints whole, and compare their digests",
                                                                 Opens::nothing});

}  // namespace

}  // namespace rille::cli
