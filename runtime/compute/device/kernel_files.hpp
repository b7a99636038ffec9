// Compiled kernels on disk: one file for each key, written beside its place and renamed into it, so that there is never
// half of one. The key is a hash of everything that the result depends on. Files that were not used for longest go when
// there are more than files_max.
//
// Without a directory (no $HOME) each kernel is compiled anew, in a directory below /tmp. Any thread, any process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::device {

// 32 hexadecimal digits of the pieces, each with its length.
std::string kernel_key(const std::vector<std::string_view>& pieces);

// A directory of its own for one compilation, removed with what is in it.
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
  explicit KernelFiles(std::string directory) : directory_(std::move(directory)) {}
  // The default: <home>/cache/kernels.
  static std::string default_directory();

  const std::string& directory() const { return directory_; }
  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }
  bool find(const std::string& name) const;                              // it is there; it has been used now
  Result<> put(const std::string& from, const std::string& name) const;  // moves the file
  void drop(const std::string& name) const;
  Result<WorkDirectory> work() const;

 private:
  void make_room() const;
  std::string directory_;
};

Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max);
Result<> write_small_file(const std::string& path, std::string_view text);

}  // namespace rille::device
