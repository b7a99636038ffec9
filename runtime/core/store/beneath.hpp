// Files below one folder under names that others choose: a machine, an archive. A name cannot lead out of the folder:
// it is strictly relative, and no symbolic link is followed on the way. The folder itself is the user's and may be
// reached through links. Any thread; these calls block.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/store/file.hpp"

namespace rille::store {

// integrity: empty, absolute, over 4096 bytes, with a zero byte, or with a part that is "..", ".", empty or over-long.
Result<> check_relative(std::string_view path);

// Makes the folder root/path with its parents. integrity: as check_relative, or a link or a file stands on the way.
Result<> make_directory_beneath(const std::string& root, std::string_view path);

// A file in a folder that is held open. A suffix names a neighbour of the file: "" is the file itself.
class FileBeneath {
 public:
  // Makes the file's folders, not the file. Errors as make_directory_beneath.
  static Result<FileBeneath> at(const std::string& root, std::string_view path);

  // integrity: a symbolic link stands there. io: the rest.
  Result<Fd> open(int flags, const std::string& suffix = "", mode_t mode = 0600) const;
  // Nothing: there is no regular file.
  std::optional<struct stat> look(const std::string& suffix = "") const;
  Result<> replace_by(const std::string& suffix) const;  // rename over the file, directory fsync
  void remove(const std::string& suffix) const;
  // Of the file system, for a user without privileges.
  std::int64_t free_bytes() const;
  const std::string& shown() const { return shown_; }

 private:
  FileBeneath(Fd folder, std::string name, std::string shown)
      : folder_(std::move(folder)), name_(std::move(name)), shown_(std::move(shown)) {}
  Fd folder_;
  std::string name_, shown_;
};

}  // namespace rille::store
