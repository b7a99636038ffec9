#include "runtime/compute/device/kernel_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/places.hpp"

namespace rille::device {

namespace fs = std::filesystem;

std::string kernel_key(const std::vector<std::string_view>& pieces) {
  Sha256 hash;
  for (const auto piece : pieces) {
    hash.update(std::to_string(piece.size()) + ":");
    hash.update(piece);
  }
  return to_hex(hash.finish());
}

Result<WorkDirectory> WorkDirectory::create(const std::string& below) {
  std::string path = below + "/work-XXXXXX";
  if (!::mkdtemp(path.data())) return errno_error("cannot make a directory in", below, errno);
  return WorkDirectory(std::move(path));
}

WorkDirectory::~WorkDirectory() {
  std::error_code failed;
  if (!path_.empty()) fs::remove_all(path_, failed);
}

std::string KernelFiles::default_directory() {
  const std::string home = default_home();
  return home.empty() ? "" : home + "/cache/kernels";
}

bool KernelFiles::find(const std::string& name) const {
  return !directory_.empty() && ::utimes(path_of(name).c_str(), nullptr) == 0;
}

Result<> KernelFiles::put(const std::string& from, const std::string& name) const {
  if (::rename(from.c_str(), path_of(name).c_str()) != 0) return errno_error("cannot write", path_of(name), errno);
  make_room();
  return success();
}

Result<WorkDirectory> KernelFiles::work() const {
  if (directory_.empty()) return WorkDirectory::create(fs::temp_directory_path().string());
  std::error_code failed;
  fs::create_directories(directory_, failed);
  if (failed) {
    return Error(errno_error("cannot make", directory_, failed.value()))
        .with_hint("compiled kernels are kept there; RILLE_HOME names another place");
  }
  return WorkDirectory::create(directory_);
}

// Removes the least recently used files. Errors are ignored: another process may be removing the same files.
void KernelFiles::make_room() const {
  struct Entry {
    fs::file_time_type used;
    fs::path path;
    std::uintmax_t bytes;
  };
  std::vector<Entry> entries;
  std::uintmax_t bytes = 0;
  std::error_code failed;
  for (fs::directory_iterator it(directory_, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code gone;
    const auto name = it->path().filename().string();
    if (!name.ends_with(".so") && !name.ends_with(".cubin")) continue;
    const auto used = it->last_write_time(gone);
    const auto size = it->file_size(gone);
    if (gone) continue;
    entries.push_back({used, it->path(), size});
    bytes += size;
  }
  std::size_t files = entries.size();
  if (files <= files_max && bytes <= bytes_max_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const auto& e : entries) {
    if (files <= files_max && bytes <= bytes_max_) return;
    fs::remove(e.path, failed);
    --files;
    bytes -= e.bytes;
  }
}

Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno_error("cannot open", path, errno);
  std::string text;
  char piece[16384];
  for (;;) {
    const auto n = ::read(file, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      ::close(file);
      return errno_error("cannot read", path, error);
    }
    if (n == 0) break;
    text.append(piece, std::size_t(n));
    if (text.size() > bytes_max) {
      ::close(file);
      return make_error(ErrorKind::invalid, fmt::format("{} is larger than {} bytes", path, bytes_max),
                        "the limit is fixed: check that this is the right file, or split it");
    }
  }
  ::close(file);
  return text;
}

Result<> write_small_file(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return errno_error("cannot open", path, errno);
  int error = 0;
  while (!text.empty() && !error) {
    const auto n = ::write(file, text.data(), text.size());
    if (n > 0) text.remove_prefix(std::size_t(n));
    else if (n < 0 && errno != EINTR) error = errno;
  }
  if (::close(file) != 0 && !error) error = errno;
  if (error) return errno_error("cannot write", path, error);
  return success();
}

}  // namespace rille::device
