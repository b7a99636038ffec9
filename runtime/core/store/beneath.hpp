// Opens files below one folder under names that come from outside, such as from a machine or an archive. Such a name
// cannot lead out of the folder: it must be strictly relative, and no symbolic link below the folder is followed. The
// path of the folder itself comes from the user and may contain links. Any thread; these calls block.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/store/file.hpp"

namespace rille::store {

// Error `integrity`: path is empty, absolute, longer than 4096 bytes, has a zero byte, or has a part that is "..", ".",
// empty or over 255 bytes.
Result<> check_relative(std::string_view path);

// Called before each folder below the root that is made; an error ends the call.
using BeforeFolder = std::function<Result<>()>;

// Creates the directory root/path and its parents. Error `integrity`: check_relative(path) fails, or a part of the path
// is a link or a file.
Result<> make_directory_beneath(const std::string& root, std::string_view path, const BeforeFolder& before = {});

// Free space, which a user without privileges may fill, of the file system that holds this open file; 0 if unknown.
std::int64_t free_bytes_at(int fd);

// A file whose folder is held open. `suffix` is added to the file's name to reach a file beside it; "": the file
// itself.
class FileBeneath {
 public:
  // Creates the folders of the file, but not the file. Error `integrity`: as in make_directory_beneath.
  static Result<FileBeneath> at(const std::string& root, std::string_view path, const BeforeFolder& before = {});

  // Error `integrity`: the file is a symbolic link. Error `io`: any other failure.
  Result<Fd> open(int flags, const std::string& suffix = "", mode_t mode = 0600) const;
  // The file's status; empty if there is no regular file with this name.
  std::optional<struct stat> look(const std::string& suffix = "") const;
  // renames the file with this suffix over the file itself, then syncs the directory
  Result<> replace_by(const std::string& suffix) const;
  void remove(const std::string& suffix) const;
  Result<> make_link(
      const std::string& target) const;  // a symbolic link in the place of the file, which must not exist
  std::int64_t free_bytes() const { return free_bytes_at(folder_.get()); }
  const std::string& shown() const { return shown_; }

 private:
  FileBeneath(Fd folder, std::string name, std::string shown)
      : folder_(std::move(folder)), name_(std::move(name)), shown_(std::move(shown)) {}
  Fd folder_;
  std::string name_, shown_;
};

}  // namespace rille::store
