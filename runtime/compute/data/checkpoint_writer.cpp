#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <tuple>

#include "runtime/compute/data/checkpoint_files.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::data {

namespace {

Result<> move_into_place(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return success();
  if (errno != EEXIST && errno != ENOTEMPTY) return errno_error("cannot rename into place", to, errno);
  // A checkpoint of that step exists: exchange the directories, so that one of the two has the name at every instant.
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return store::remove_tree(from);
  if (errno != EINVAL && errno != ENOSYS) return errno_error("cannot rename into place", to, errno);
  std::string old = from + "-old";
  if (::rename(to.c_str(), old.c_str()) != 0) return errno_error("cannot move aside", to, errno);
  if (::rename(from.c_str(), to.c_str()) != 0) return errno_error("cannot rename into place", to, errno);
  return store::remove_tree(old);
}

}  // namespace

void link_latest(const std::string& root, std::int64_t step) {
  std::error_code failed;
  const std::string temporary = root + "/.latest.new";
  std::filesystem::remove(temporary, failed);
  std::filesystem::create_directory_symlink(checkpoint_name(step), temporary, failed);
  if (!failed) std::filesystem::rename(temporary, root + "/latest", failed);
}

CheckpointWriter::CheckpointWriter(CheckpointWriter&& o) noexcept
    : root_(std::move(o.root_)), temporary_(std::exchange(o.temporary_, {})), step_(o.step_), lock_(std::move(o.lock_)),
      files_(std::move(o.files_)) {}

CheckpointWriter::~CheckpointWriter() {
  // If the removal fails, the next begin() removes the directory.
  if (!temporary_.empty()) (void)store::remove_tree(temporary_);
}

Result<> CheckpointWriter::check_name(const std::string& name) const {
  if (!is_checkpoint_file_name(name))
    return make_error(ErrorKind::invalid, fmt::format("'{}' is not a name for a checkpoint's file", name),
                      "a plain name that ends in .safetensors");
  for (const CheckpointFile& other : files_)
    if (other.name == name)
      return make_error(ErrorKind::invalid, fmt::format("the checkpoint has a file '{}' already", name),
                        "give each file of the checkpoint its own name");
  return success();
}

Result<> CheckpointWriter::write(const std::string& part, const std::vector<StateSource>& tensors,
                                 const Checkpoint* before) {
  RILLE_CHECK(check_name(part + ".safetensors"));
  RILLE_TRY(std::vector<CheckpointFile> files, write_part({temporary_, part, ""}, tensors, before));
  for (CheckpointFile& file : files) RILLE_CHECK(add(std::move(file)));
  return success();
}

Result<> CheckpointWriter::add(CheckpointFile file) {
  RILLE_CHECK(check_name(file.name));
  struct stat info {};
  std::string path = temporary_ + "/" + file.name;
  if (::stat(path.c_str(), &info) != 0) return errno_error("cannot look at", path, errno);
  if (info.st_size != file.fingerprint.size_bytes)
    return make_error(
        ErrorKind::integrity,
        fmt::format("'{}' has {} bytes, but {} were written", path, info.st_size, file.fingerprint.size_bytes),
        "the file was changed or cut off after writing: check the disk and save the checkpoint again");
  files_.push_back(std::move(file));
  return success();
}

Result<Checkpoint> CheckpointWriter::publish(Manifest manifest) {
  if (temporary_.empty())
    return make_error(ErrorKind::state, "the checkpoint has been published already",
                      "begin a new checkpoint for each save");
  manifest.step = step_;
  manifest.files = files_;
  if (!manifest.created_us) manifest.created_us = system_clock().wall_us();
  RILLE_CHECK(store::write_file_atomic(temporary_ + "/manifest.json", manifest.to_json()));

  // Compare and publish under one lock, so that two machines on a shared disk cannot both publish.
  store::Fd lock(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid()) return errno_error("cannot open directory", root_, errno);
  if (::flock(lock.get(), LOCK_EX) != 0) return errno_error("cannot lock directory", root_, errno);
  RILLE_TRY(auto latest, CheckpointStore(root_).latest());
  if (latest &&
      std::tie(manifest.generation, manifest.epoch) < std::tie(latest->manifest.generation, latest->manifest.epoch))
    return make_error(ErrorKind::state,
                      fmt::format("cannot publish {} of generation {}, epoch {}: '{}' is of generation {}, epoch {}",
                                  checkpoint_name(step_), manifest.generation, manifest.epoch, latest->directory,
                                  latest->manifest.generation, latest->manifest.epoch),
                      "a newer machine has taken over this work; this one should end");
  std::string place = root_ + "/" + checkpoint_name(step_);
  RILLE_CHECK(move_into_place(temporary_, place));
  temporary_.clear();
  RILLE_CHECK(store::sync_directory(root_));
  return Checkpoint{std::move(place), std::move(manifest)};
}

}  // namespace rille::data
