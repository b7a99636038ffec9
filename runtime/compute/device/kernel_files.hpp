// Compiled kernels on disk, one file per key. A file is written in another directory and renamed into place, so that no
// reader sees a partial file. The key is a hash of everything that the compiled result depends on; scripts choose most
// of that, so it must not have collisions. If there are more files or bytes than allowed, the least recently used files
// are removed.
//
// Without a cache directory (no $HOME) each kernel is compiled again, in a directory below /tmp. Any thread, any
// process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::device {

// Returns 64 hexadecimal digits, the SHA-256 of the pieces and of their lengths.
std::string kernel_key(const std::vector<std::string_view>& pieces);

// A temporary directory for one compilation, removed with its contents.
class WorkDirectory {
 public:
  static Result<WorkDirectory> create(const std::string& below);
  ~WorkDirectory();
  WorkDirectory(WorkDirectory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  WorkDirectory& operator=(WorkDirectory&&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit WorkDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

class KernelFiles {
 public:
  static constexpr std::size_t files_max = 1000;
  explicit KernelFiles(std::string directory, std::uintmax_t bytes_max = UINTMAX_MAX)
      : directory_(std::move(directory)), bytes_max_(bytes_max) {}
  // The default cache directory: <home>/cache/kernels.
  static std::string default_directory();

  const std::string& directory() const { return directory_; }
  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }
  bool find(const std::string& name) const;  // whether the file exists; marks it as used now
  Result<> put(const std::string& from, const std::string& name) const;  // moves the file `from` into the cache
  Result<WorkDirectory> work() const;

 private:
  void make_room() const;
  std::string directory_;
  std::uintmax_t bytes_max_;
};

Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max);
Result<> write_small_file(const std::string& path, std::string_view text);

}  // namespace rille::device
