#include "bindings/cli/checkpoint_places.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>

#include "runtime/core/loop/thread_job.hpp"
#include "runtime/workflow/transfer/store_files.hpp"

namespace rille::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t piece_bytes = 4 << 20;

Error changed(const std::string& path, const std::string& why) {
  return make_error(ErrorKind::integrity, fmt::format("'{}' {} while it was copied", path, why),
                    "copy it when nothing writes there any more");
}

// Copies a file and compares what was read with the digest in the manifest.
Result<> copy_file(const std::string& from, const std::string& to, const store::Fingerprint& expected) {
  const store::Fd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.valid()) return errno_error("cannot open", from, errno);
  RILLE_TRY(store::FileWriter out, store::FileWriter::create(to, expected.size_bytes));
  store::Hasher hasher;
  std::string piece(piece_bytes, '\0');
  while (true) {
    const ssize_t got = ::read(in.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("cannot read", from, errno);
    if (got == 0) break;
    const std::string_view bytes(piece.data(), static_cast<std::size_t>(got));
    hasher.update(bytes);
    RILLE_CHECK(out.write(bytes));
  }
  const store::Fingerprint found = hasher.finish();
  if (found.size_bytes != expected.size_bytes || found.xxh3 != expected.xxh3) return changed(from, "changed");
  return out.commit();
}

Result<data::Checkpoint> copy_files(const data::Checkpoint& from, const std::string& folder) {
  for (const data::CheckpointFile& file : from.manifest.files)
    RILLE_CHECK(copy_file(from.directory + "/" + file.name, folder + "/" + file.name, file.fingerprint));
  return data::Checkpoint{folder, from.manifest};
}

constexpr const char* folder_hint =
    "name the folder that holds step-00000050 and so on, or an address such as s3://bucket/run/train/";

Result<fs::path> real_place(const std::string& place) {
  std::error_code failed;
  fs::path real = fs::canonical(place, failed);
  if (failed) return errno_error("cannot look at", place, failed.value()).with_hint(folder_hint);
  return real;
}

Result<data::Checkpoint> look_for_one(const std::string& place) {
  RILLE_TRY(const fs::path real, real_place(place));
  std::error_code failed;
  if (fs::exists(real / "manifest.json", failed)) return data::load_checkpoint(real.string());
  RILLE_TRY(const FolderPlace found, folder_place(place));
  if (found.only >= 0) return found.store.load(found.only);
  RILLE_TRY(const bool any, found.store.any());
  if (!any) return no_checkpoint_in(place, false);
  return found.store.load_latest(true);
}

Async<ChosenCheckpoint> choose_in_store(Loop& loop, std::string address, CancelToken token) {
  RILLE_CO_TRY(const StorePlace place, store_place(loop, address));
  RILLE_CO_TRY(const transfer::Latest latest, co_await place.stored->read(std::move(token)));
  for (const transfer::StoredCheckpoint& one : latest.checkpoints) {
    if (!place.only.empty() && one.folder != place.only) continue;
    ChosenCheckpoint out;
    out.step = one.step;
    out.shown = place.stored->address(one.folder);
    out.stored = place.stored;
    out.there = one;
    co_return out;
  }
  co_return no_checkpoint_in(address, true);
}

}  // namespace

std::int64_t step_in(const std::string& name) {
  std::int64_t step = -1;
  if (!name.starts_with("step-")) return -1;
  std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return step >= 0 && data::checkpoint_name(step) == name ? step : -1;
}

Error no_checkpoint_in(const std::string& place, bool in_store) {
  const char* const hint = in_store
                               ? "name the folder that holds latest.json: the address that the training was given, and "
                                 "its name: s3://bucket/run/train/"
                               : folder_hint;
  return make_error(ErrorKind::state, fmt::format("there is no checkpoint in '{}'", place), hint);
}

Result<FolderPlace> folder_place(const std::string& place) {
  RILLE_TRY(const fs::path real, real_place(place));
  const std::int64_t only = step_in(real.filename().string());
  return FolderPlace{data::CheckpointStore(only < 0 ? real.string() : real.parent_path().string()), only};
}

Result<StorePlace> store_place(Loop& loop, const std::string& address, const std::string& writer) {
  RILLE_TRY(const objects::ObjectUrl url, objects::parse_object_url(address));
  StorePlace out;
  std::string prefix = url.key;
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  const std::size_t name = prefix.size() < 2 ? 0 : prefix.rfind('/', prefix.size() - 2) + 1;
  if (transfer::parse_stored_folder(prefix.substr(name))) {
    out.only = prefix.substr(name);
    prefix.resize(name);
  }
  RILLE_TRY(auto store, transfer::open_users_store(url, loop, nullptr));
  out.stored = std::make_shared<transfer::StoredCheckpoints>(std::move(store), loop, std::move(prefix), writer, 0);
  return out;
}

Async<ChosenCheckpoint> choose_checkpoint(Loop& loop, std::string place, CancelToken token) {
  if (objects::is_object_url(place)) co_return co_await choose_in_store(loop, std::move(place), std::move(token));
  const std::function<Result<data::Checkpoint>()> job = [place] { return look_for_one(place); };
  ChosenCheckpoint out;
  RILLE_CO_TRY(out.here, co_await thread_job(loop, job));
  out.step = out.here.manifest.step;
  out.shown = out.here.directory;
  co_return out;
}

Async<data::Checkpoint> bring_checkpoint(Loop& loop, ChosenCheckpoint chosen, std::string folder, CancelToken token) {
  std::function<Result<data::Checkpoint>()> job = [from = chosen.here, folder] { return copy_files(from, folder); };
  if (!chosen.stored) co_return co_await thread_job(loop, job);
  const transfer::StoredCheckpoints::Take take = [stored = chosen.stored, folder](transfer::StoredCheckpoint from,
                                                                                  transfer::StoredFile file,
                                                                                  std::string, CancelToken t) {
    return transfer::take_file(*stored, std::move(from), std::move(file), folder, nullptr, std::move(t));
  };
  transfer::Latest alone;
  alone.checkpoints.push_back(chosen.there);
  const auto found = co_await chosen.stored->newest(std::move(alone), take, std::move(token));
  if (!found) co_return found.error().cause ? *found.error().cause : found.error();
  job = [folder] { return data::load_checkpoint(folder); };
  co_return co_await thread_job(loop, job);
}

}  // namespace rille::cli
