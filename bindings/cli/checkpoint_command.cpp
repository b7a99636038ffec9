// `rille checkpoint ls` and `rille checkpoint verify`: the checkpoints in a folder, or of a training in a store.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "bindings/cli/command.hpp"
#include "bindings/cli/fit.hpp"
#include "bindings/cli/interrupt.hpp"
#include "runtime/compute/data/checkpoint.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/workflow/transfer/store_files.hpp"
#include "runtime/workflow/transfer/stored_checkpoints.hpp"

namespace rille::cli {

namespace fs = std::filesystem;

namespace {

struct FoundCheckpoint {
  std::int64_t step = 0, files = 0, size_bytes = 0;
  std::string place;
  std::optional<Error> fault = {};
};
using FoundCheckpoints = std::vector<FoundCheckpoint>;

// The step in "step-00000050"; -1: another name.
std::int64_t step_in(const std::string& name) {
  std::int64_t step = -1;
  if (!name.starts_with("step-")) return -1;
  std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return step >= 0 && data::checkpoint_name(step) == name ? step : -1;
}

Error none_at(const std::string& place, const char* hint) {
  return make_error(ErrorKind::state, fmt::format("there is no checkpoint in '{}'", place), hint);
}

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

// `place`: a folder of checkpoints, or one checkpoint of it.
Result<FoundCheckpoints> look_in_folder(const std::string& place, bool digests) {
  constexpr const char* hint =
      "name the folder that holds step-00000050 and so on, or an address such as "
      "s3://bucket/run/train/";
  std::error_code failed;
  const fs::path real = fs::canonical(place, failed);
  if (failed) return errno_error("cannot look at", place, failed.value());
  const std::int64_t only = step_in(real.filename().string());
  const data::CheckpointStore store(only < 0 ? real.string() : real.parent_path().string());
  RILLE_TRY(const std::vector<data::Checkpoint> complete, store.list());
  FoundCheckpoints out;
  for (fs::directory_iterator it(store.root(), failed), end; !failed && it != end; it.increment(failed)) {
    const std::int64_t step = step_in(it->path().filename().string());
    if (step >= 0 && (only < 0 || step == only)) out.push_back(look_at_step(store, complete, step, digests));
  }
  if (failed) return errno_error("cannot list", store.root(), failed.value());
  if (out.empty()) return none_at(place, hint);
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
  RILLE_CO_TRY(objects::ObjectUrl url, objects::parse_object_url(address));
  std::string prefix = url.key, only;
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  const std::size_t name = prefix.size() < 2 ? 0 : prefix.rfind('/', prefix.size() - 2) + 1;
  if (transfer::parse_stored_folder(prefix.substr(name))) {
    only = prefix.substr(name);
    prefix.resize(name);
  }
  RILLE_CO_TRY(auto store, transfer::open_users_store(url, loop, nullptr));
  const auto stored = std::make_shared<transfer::StoredCheckpoints>(std::move(store), loop, std::move(prefix), "", 0);
  RILLE_CO_TRY(const transfer::Latest latest, co_await stored->read(token));
  FoundCheckpoints out;
  for (const transfer::StoredCheckpoint& one : latest.checkpoints) {
    if (!only.empty() && one.folder != only) continue;
    FoundCheckpoint row{one.step, static_cast<std::int64_t>(one.files.size()), 0, stored->address(one.folder)};
    for (const transfer::StoredFile& file : one.files) row.size_bytes += file.size_bytes;
    if (digests) {
      Result<> sound = co_await verify_stored(stored, one, token);
      if (!sound && sound.error().kind != ErrorKind::integrity) co_return std::move(sound).error();
      if (!sound) row.fault = sound.error();
    }
    out.push_back(std::move(row));
  }
  if (out.empty())
    co_return none_at(address,
                      "name the folder that holds latest.json: the address that the training was given, and "
                      "its name: s3://bucket/run/train/");
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
                                      "rille checkpoint ls PLACE, or rille checkpoint verify PLACE"));
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
                                                    "checkpoints in a folder or a store: ls, verify", Opens::nothing});
const Registered<CheckpointListCommand> checkpoint_list_row({Group::machines, "checkpoint ls", "list checkpoints",
                                                             Opens::nothing});
const Registered<CheckpointVerifyCommand> checkpoint_verify_row({Group::machines, "checkpoint verify",
                                                                 "read checkpoints whole, and compare their digests",
                                                                 Opens::nothing});

}  // namespace

}  // namespace rille::cli
