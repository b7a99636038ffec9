#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <set>
#include <tuple>

#include "runtime/compute/data/checkpoint.hpp"
#include "runtime/core/base/id.hpp"

namespace rille::data {

namespace {

constexpr std::int64_t manifest_bytes_max = 64 << 20;
constexpr std::string_view hidden_prefix = ".tmp-";

// Returns the names in a directory; an empty list if the directory does not exist.
Result<std::vector<std::string>> names_in(const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  std::vector<std::string> names;
  if (!directory && errno == ENOENT) return names;
  if (!directory) return errno_error("cannot list", path, errno);
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) names.emplace_back(entry->d_name);
  if (errno) return errno_error("cannot list", path, errno);
  return names;
}

// Returns the step in a directory's name: "step-00000050" gives 50; other names give -1.
std::int64_t step_of(std::string_view name) {
  std::int64_t step = -1;
  if (!name.starts_with("step-")) return -1;
  auto [end, failed] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
  bool all = failed == std::errc() && end == name.data() + name.size();
  return all && checkpoint_name(step) == name ? step : -1;
}

Error fault(const std::string& directory, const std::string& why) {
  return make_error(ErrorKind::integrity, fmt::format("checkpoint '{}' is damaged: {}", directory, why),
                    "load an earlier checkpoint, or restore this one from a backup");
}

// Reads a checkpoint's manifest and checks the files' sizes, but not their digests. `step`: -1: any.
Result<Checkpoint> look_at(const std::string& directory, std::int64_t step) {
  auto text = store::read_file(directory + "/manifest.json", manifest_bytes_max);
  if (!text) return fault(directory, text.error().code == "errno 2" ? "it has no manifest.json" : text.error().message);
  auto manifest = Manifest::from_json(*text, directory + "/manifest.json");
  if (!manifest) return fault(directory, manifest.error().message);
  if (step >= 0 && manifest->step != step)
    return fault(directory, fmt::format("its manifest is of step {}", manifest->step));
  for (const CheckpointFile& file : manifest->files) {
    struct stat info {};
    if (::stat((directory + "/" + file.name).c_str(), &info) != 0)
      return fault(directory, fmt::format("file '{}' is missing", file.name));
    if (info.st_size != file.fingerprint.size_bytes)
      return fault(directory, fmt::format("file '{}' has {} bytes where the manifest says {}", file.name, info.st_size,
                                          file.fingerprint.size_bytes));
  }
  return Checkpoint{directory, std::move(*manifest)};
}

Result<> verify(const Checkpoint& checkpoint) {
  for (const CheckpointFile& file : checkpoint.manifest.files) {
    auto opened = checkpoint.open(file.name, Verify::digests);
    if (!opened) return std::move(opened).error();
  }
  return success();
}

bool older(const Checkpoint& a, const Checkpoint& b) {
  const Manifest &m = a.manifest, &n = b.manifest;
  return std::tie(m.generation, m.epoch, m.step) < std::tie(n.generation, n.epoch, n.step);
}

struct Damaged {
  std::int64_t step;
  Error error;
};
struct Scan {
  std::vector<Checkpoint> complete;  // sorted by (generation, epoch, step), oldest first
  std::vector<Damaged> damaged;      // sorted by step, newest first
};

Result<Scan> scan(const std::string& root) {
  RILLE_TRY(auto names, names_in(root));
  Scan out;
  for (const std::string& name : names) {
    std::int64_t step = step_of(name);
    if (step < 0) continue;
    auto found = look_at(root + "/" + name, step);
    if (found) out.complete.push_back(std::move(*found));
    else out.damaged.push_back({step, std::move(found.error())});
  }
  std::sort(out.complete.begin(), out.complete.end(), older);
  std::sort(out.damaged.begin(), out.damaged.end(), [](const Damaged& a, const Damaged& b) { return a.step > b.step; });
  return out;
}

// Adds to the error a hint with the last good checkpoint among the first `before` ones in `complete`.
Error with_way_back(Error error, const std::vector<Checkpoint>& complete, std::size_t before) {
  for (std::size_t i = before; i-- > 0;)
    if (verify(complete[i])) {
      error.hint = fmt::format("the last good checkpoint before this one is step {}: '{}'", complete[i].manifest.step,
                               complete[i].directory);
      error.resource = complete[i].directory;
      return error;
    }
  error.hint = "there is no good checkpoint before this one";
  return error;
}

// Opens and locks the directory. Invalid if `path` no longer names that directory or another process has locked it.
store::Fd lock_directory(const std::string& path) {
  store::Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return {};
  struct stat named {
  }, held{};
  if (::stat(path.c_str(), &named) != 0 || ::fstat(fd.get(), &held) != 0) return {};
  return named.st_ino == held.st_ino && named.st_dev == held.st_dev ? std::move(fd) : store::Fd();
}

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("step-{:08}", step); }

Result<Checkpoint> load_checkpoint(const std::string& directory) {
  RILLE_TRY(Checkpoint found, look_at(directory, -1));
  RILLE_CHECK(verify(found));
  return found;
}

Result<store::SafetensorsFile> Checkpoint::open(std::string_view file_name, Verify how) const {
  auto entry = std::find_if(manifest.files.begin(), manifest.files.end(),
                            [&](const CheckpointFile& f) { return f.name == file_name; });
  if (entry == manifest.files.end())
    return make_error(ErrorKind::invalid, fmt::format("checkpoint '{}' has no file '{}'", directory, file_name),
                      "the checkpoint's manifest.json lists its files: name one of them");
  const std::string path = directory + "/" + entry->name;
  // The digest is of what read() gives: a script that runs meanwhile may truncate the file, and an access to the map
  // would then end the process.
  store::Fingerprint found;
  if (how == Verify::digests) { RILLE_TRY(found, store::fingerprint_file(path)); }
  auto file = store::SafetensorsFile::open(path);
  if (!file) return file.error().kind == ErrorKind::integrity ? fault(directory, file.error().message) : file.error();
  const store::Fingerprint& expected = entry->fingerprint;
  auto size = static_cast<std::int64_t>(file->file_bytes().size());
  if (size != expected.size_bytes)
    return fault(directory, fmt::format("file '{}' has {} bytes where the manifest says {}", file_name, size,
                                        expected.size_bytes));
  if (how == Verify::sizes) return file;
  if (found.xxh3 != expected.xxh3)
    return fault(directory, fmt::format("file '{}' has the XXH3 {} where the manifest says {}", file_name, found.xxh3,
                                        expected.xxh3));
  return file;
}

Result<CheckpointWriter> CheckpointStore::begin(std::int64_t step) const {
  if (step < 0)
    return make_error(ErrorKind::invalid, fmt::format("a checkpoint's step cannot be {}", step),
                      "steps are whole numbers from 0 on");
  RILLE_CHECK(store::make_directories(root_));
  RILLE_TRY(auto names, names_in(root_));
  for (const std::string& name : names) {
    if (!name.starts_with(hidden_prefix)) continue;
    std::string left = root_ + "/" + name;
    // A writer that is still active, in this or another process, holds the lock.
    const store::Fd lock = lock_directory(left);
    if (lock.valid()) RILLE_CHECK(store::remove_tree(left));
  }
  std::string temporary;
  for (int tries = 0; tries < 20; ++tries) {
    temporary = fmt::format("{}/{}{}-{}", root_, hidden_prefix, checkpoint_name(step), random_hex(6));
    if (::mkdir(temporary.c_str(), 0755) != 0) return errno_error("cannot make directory", temporary, errno);
    // Another process may have removed the new directory as a leftover before this process locked it.
    if (store::Fd lock = lock_directory(temporary); lock.valid())
      return CheckpointWriter(root_, std::move(temporary), step, std::move(lock));
  }
  return errno_error("cannot lock directory", temporary, EBUSY);
}

Result<std::vector<Checkpoint>> CheckpointStore::list() const {
  RILLE_TRY(Scan found, scan(root_));
  return std::move(found.complete);
}

Result<std::optional<Checkpoint>> CheckpointStore::latest() const {
  RILLE_TRY(auto complete, list());
  if (complete.empty()) return std::optional<Checkpoint>();
  return std::optional<Checkpoint>(std::move(complete.back()));
}

Result<bool> CheckpointStore::any() const {
  RILLE_TRY(Scan found, scan(root_));
  return !found.complete.empty() || !found.damaged.empty();
}

Result<Checkpoint> CheckpointStore::load(std::int64_t step) const {
  RILLE_TRY(Scan found, scan(root_));
  for (std::size_t i = 0; i < found.complete.size(); ++i) {
    if (found.complete[i].manifest.step != step) continue;
    if (auto sound = verify(found.complete[i]); !sound) return with_way_back(sound.error(), found.complete, i);
    return std::move(found.complete[i]);
  }
  for (Damaged& d : found.damaged) {
    if (d.step != step) continue;
    auto after = std::partition_point(found.complete.begin(), found.complete.end(),
                                      [&](const Checkpoint& c) { return c.manifest.step < step; });
    return with_way_back(std::move(d.error), found.complete, static_cast<std::size_t>(after - found.complete.begin()));
  }
  Error none = make_error(ErrorKind::state, fmt::format("there is no checkpoint of step {} in '{}'", step, root_),
                          "no complete checkpoint is in this folder: check its path");
  if (!found.complete.empty())
    none.hint = fmt::format("the newest there is step {}", found.complete.back().manifest.step);
  return none;
}

Result<Checkpoint> CheckpointStore::load_latest(bool strict, std::vector<Error>* skipped) const {
  RILLE_TRY(Scan found, scan(root_));
  std::optional<Error> first;
  auto pass_over = [&](const Error& e) {
    if (!first) first = e;
    if (skipped) skipped->push_back(e);
  };
  std::int64_t newest_step = found.complete.empty() ? -1 : found.complete.back().manifest.step;
  for (const Damaged& d : found.damaged) {
    if (d.step <= newest_step) continue;
    if (strict) return with_way_back(d.error, found.complete, found.complete.size());
    pass_over(d.error);
  }
  for (std::size_t i = found.complete.size(); i-- > 0;) {
    auto sound = verify(found.complete[i]);
    if (sound) return std::move(found.complete[i]);
    if (strict) return with_way_back(sound.error(), found.complete, i);
    pass_over(sound.error());
  }
  Error none = make_error(ErrorKind::state, fmt::format("there is no good checkpoint in '{}'", root_),
                          "no checkpoint is in this folder: check its path, or save one first");
  if (!first) return none;
  none.kind = ErrorKind::integrity;
  none.hint = "restore a backup; or move the folder away, to start over";
  none.cause = std::make_shared<const Error>(std::move(*first));
  return none;
}

Result<std::vector<std::int64_t>> CheckpointStore::retain(const Retention& rule) const {
  RILLE_TRY(auto complete, list());
  std::vector<std::int64_t> removed;
  auto keep = static_cast<std::size_t>(std::max(rule.keep, 1));
  for (std::size_t i = 0; i + keep < complete.size(); ++i) {
    std::int64_t step = complete[i].manifest.step;
    if (rule.every > 0 && step % rule.every == 0) continue;
    // Rename the directory to a hidden name first, so that a partly removed checkpoint never looks damaged.
    std::string hidden = fmt::format("{}/{}{}-{}", root_, hidden_prefix, checkpoint_name(step), random_hex(6));
    if (::rename(complete[i].directory.c_str(), hidden.c_str()) != 0) {
      if (errno == ENOENT) continue;  // another process has removed the checkpoint
      return errno_error("cannot remove", complete[i].directory, errno);
    }
    RILLE_CHECK(store::remove_tree(hidden));
    removed.push_back(step);
  }
  return removed;
}

}  // namespace rille::data
