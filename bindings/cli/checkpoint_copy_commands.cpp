// `rille checkpoint cp` copies a checkpoint between folders and object stores; `rille checkpoint convert` writes its
// tensors for other programs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "bindings/cli/checkpoint_places.hpp"
#include "bindings/cli/command.hpp"
#include "bindings/cli/interrupt.hpp"
#include "runtime/compute/data/checkpoint_convert.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/loop/thread_job.hpp"

namespace rille::cli {

namespace {

// A folder for files on their way; removed with the object.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make(const std::string& beside) {
    std::string path = fmt::format("{}/rille-checkpoint-{}", beside, random_hex(6));
    RILLE_CHECK(store::make_directories(path));
    return ScratchFolder(std::move(path));
  }
  ScratchFolder(ScratchFolder&& o) noexcept : path_(std::exchange(o.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    if (!path_.empty()) (void)store::remove_tree(path_);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct CopiedCheckpoint {
  std::int64_t step = 0, tensors = 0, files = 0, size_bytes = 0;
  std::string place;
  bool was_there = false;
};

Async<CopiedCheckpoint> copy_to_folder(Loop& loop, ChosenCheckpoint chosen, std::string to, CancelToken token) {
  if (step_in(std::filesystem::path(to).filename().string()) >= 0)
    co_return make_error(ErrorKind::invalid, fmt::format("'{}' is the name of one checkpoint", to),
                         "name the folder that will hold it: rille checkpoint cp FROM backup");
  const data::CheckpointStore store(to);
  RILLE_CO_TRY(data::CheckpointWriter writer, store.begin(chosen.step));
  const std::int64_t step = chosen.step;
  RILLE_CO_TRY(const data::Checkpoint brought,
               co_await bring_checkpoint(loop, std::move(chosen), writer.directory(), std::move(token)));
  if (brought.manifest.step != step)
    co_return make_error(ErrorKind::integrity,
                         fmt::format("the manifest of step {} is of step {}", step, brought.manifest.step));
  CopiedCheckpoint out;
  out.step = step;
  for (const data::CheckpointFile& file : brought.manifest.files) {
    RILLE_CO_CHECK(writer.add(file));
    out.size_bytes += file.fingerprint.size_bytes;
  }
  RILLE_CO_TRY(const data::Checkpoint done, writer.publish(brought.manifest));
  RILLE_CO_TRY(const auto newest, store.latest());
  if (newest) data::link_latest(to, newest->manifest.step);
  out.files = static_cast<std::int64_t>(done.manifest.files.size());
  out.place = done.directory;
  co_return out;
}

bool same_files(const std::vector<transfer::StoredFile>& a, const std::vector<transfer::StoredFile>& b) {
  return std::is_permutation(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.name == y.name && x.sha256 == y.sha256 && x.size_bytes == y.size_bytes;
  });
}

// Sends a checkpoint that is here. The newest one in a store is what a training goes on from, so an older one does not
// take its place.
Async<CopiedCheckpoint> send_to_store(Loop& loop, StorePlace place, data::Checkpoint here, CancelToken token) {
  const std::shared_ptr<transfer::StoredCheckpoints> stored = place.stored;
  CopiedCheckpoint out;
  transfer::StoredCheckpoint made;
  out.step = made.step = here.manifest.step;
  made.generation = 1;
  made.directory = "checkpoints/" + data::checkpoint_name(made.step);
  const std::string directory = here.directory;
  const std::function<Result<std::vector<transfer::StoredFile>>()> look = [directory] {
    return transfer::files_here(directory);
  };
  RILLE_CO_TRY(made.files, co_await thread_job(loop, look));
  for (const transfer::StoredFile& file : made.files) out.size_bytes += file.size_bytes;
  out.files = static_cast<std::int64_t>(made.files.size());
  RILLE_CO_TRY(const transfer::Latest before, co_await stored->read(token));
  if (!before.checkpoints.empty()) {
    const transfer::StoredCheckpoint& newest = before.checkpoints.front();
    if (newest.step > made.step)
      co_return make_error(
          ErrorKind::state,
          fmt::format("{} has step {}, which is newer than step {}", stored->address(), newest.step, made.step),
          "a training there would go back: copy it to another address");
    out.place = stored->address(newest.folder);
    out.was_there = newest.step == made.step && same_files(newest.files, made.files);
    if (out.was_there) co_return out;
  }
  transfer::StoreRetention all;
  all.newest = static_cast<int>(transfer::stored_checkpoints_max);
  const transfer::StoredCheckpoints::Send send = [stored, directory](transfer::StoredFile file, std::string key,
                                                                     CancelToken t) {
    return transfer::send_here(*stored, directory + "/" + file.name, std::move(key), std::move(t));
  };
  RILLE_CO_TRY(const transfer::StoredCheckpoint done, co_await stored->add(made, all, send, token));
  out.place = stored->address(done.folder);
  co_return out;
}

Async<CopiedCheckpoint> copy_to_store(Loop& loop, ChosenCheckpoint chosen, std::string to, CancelToken token) {
  RILLE_CO_TRY(StorePlace place, store_place(loop, to, "cp-" + random_hex(8)));
  if (!place.only.empty())
    co_return make_error(ErrorKind::invalid, fmt::format("'{}' is the address of one checkpoint", to),
                         "name the address of a training: s3://bucket/run/train/");
  if (!chosen.stored) co_return co_await send_to_store(loop, std::move(place), chosen.here, std::move(token));
  std::error_code failed;
  const std::string beside = std::filesystem::temp_directory_path(failed).string();
  if (failed) co_return errno_error("cannot use", beside, failed.value());
  RILLE_CO_TRY(const ScratchFolder scratch, ScratchFolder::make(beside));
  RILLE_CO_TRY(data::Checkpoint here, co_await bring_checkpoint(loop, std::move(chosen), scratch.path(), token));
  co_return co_await send_to_store(loop, std::move(place), std::move(here), std::move(token));
}

Async<CopiedCheckpoint> copy_checkpoint(Loop& loop, std::string from, std::string to, CancelToken token) {
  RILLE_CO_TRY(ChosenCheckpoint chosen, co_await choose_checkpoint(loop, std::move(from), token));
  if (objects::is_object_url(to))
    co_return co_await copy_to_store(loop, std::move(chosen), std::move(to), std::move(token));
  while (to.size() > 1 && to.ends_with('/')) to.pop_back();
  co_return co_await copy_to_folder(loop, std::move(chosen), std::move(to), std::move(token));
}

Async<CopiedCheckpoint> convert(Loop& loop, std::string from, std::string to, CancelToken token) {
  if (objects::is_object_url(to))
    co_return make_error(ErrorKind::invalid,
                         fmt::format("'{}' is in a store: a checkpoint is converted to files here", to),
                         "name a folder or a file, and send it with rille cp");
  RILLE_CO_TRY(ChosenCheckpoint chosen, co_await choose_checkpoint(loop, std::move(from), token));
  data::Checkpoint here = chosen.here;
  std::optional<ScratchFolder> scratch;
  if (chosen.stored) {
    RILLE_CO_TRY(ScratchFolder made, ScratchFolder::make(store::parent_path(to)));
    scratch.emplace(std::move(made));
    RILLE_CO_TRY(here, co_await bring_checkpoint(loop, std::move(chosen), scratch->path(), std::move(token)));
  }
  const std::function<Result<data::Converted>()> job = [here, to] { return data::convert_checkpoint(here, to); };
  RILLE_CO_TRY(const data::Converted made, co_await thread_job(loop, job));
  CopiedCheckpoint out;
  out.step = here.manifest.step;
  out.tensors = made.tensors;
  out.files = made.files;
  out.size_bytes = made.size_bytes;
  out.place = to;
  co_return out;
}

using Work = Async<CopiedCheckpoint> (*)(Loop& loop, std::string from, std::string to, CancelToken token);

Exit do_checkpoint(App& app, Work work, const std::string& from, const std::string& to, const char* verb) {
  CancelSource cancel;
  const auto stop = [&cancel](int) {
    cancel.cancel(make_error(ErrorKind::cancelled, "interrupted", "nothing was changed: run it again"));
  };
  const Interrupts interrupts(
      *app.loop, [](void*) {}, nullptr, stop, stop);
  const Result<CopiedCheckpoint> done = run_blocking(*app.loop, work(*app.loop, from, to, cancel.token()));
  if (!done) return fail(app, done.error());
  if (app.json) {
    Value v = Value().set("step", done->step).set("files", done->files).set("bytes", done->size_bytes);
    if (done->tensors > 0) v.set("tensors", done->tensors);
    app.terminal.out(v.set("place", done->place).to_json_pretty() + "\n");
  } else if (done->was_there) {
    app.terminal.note(fmt::format("step {} is there already: {}", done->step, done->place));
  } else {
    app.terminal.note(fmt::format("{} step {}, {} {}, {}, to {}", verb, done->step, done->files,
                                  done->files == 1 ? "file" : "files", format_size_bytes(done->size_bytes),
                                  done->place));
  }
  return Exit::ok;
}

constexpr const char* from_text = "a folder with checkpoints or an address: its newest; or one of them";

struct CheckpointCopyCommand final : Command {
  std::string from, to;
  void declare(Options& o) override {
    o.option("FROM", from, from_text).required();
    o.option("TO", to, "a folder of checkpoints, or an address such as s3://bucket/run/train/").required();
  }
  Exit run(App& app) override { return do_checkpoint(app, copy_checkpoint, from, to, "copied"); }
};

struct CheckpointConvertCommand final : Command {
  std::string from, to;
  void declare(Options& o) override {
    o.option("FROM", from, from_text).required();
    o.option("TO", to, "a new folder, or one file that ends in .safetensors").required();
  }
  Exit run(App& app) override { return do_checkpoint(app, convert, from, to, "converted"); }
};

const Registered<CheckpointCopyCommand> checkpoint_copy_row({Group::machines, "checkpoint cp",
                                                             "copy a checkpoint between folders and stores",
                                                             Opens::nothing});
const Registered<CheckpointConvertCommand> checkpoint_convert_row(
    {Group::machines, "checkpoint convert", "write a checkpoint's tensors for PyTorch and others", Opens::nothing});

}  // namespace

}  // namespace rille::cli
