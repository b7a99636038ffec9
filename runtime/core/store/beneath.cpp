#include "runtime/core/store/beneath.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace rille::store {

namespace {

constexpr std::size_t path_bytes_max = 4096, name_bytes_max = 255;

Error leads_out(std::string_view path, const char* why) {
  std::string shown(path.substr(0, 200));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return make_error(ErrorKind::integrity, fmt::format("the file name '{}' {}", shown, why),
                    "a file name from another machine must stay below the target folder");
}

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    out.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// Opens the folder root/parts[0]/parts[1]/.. and creates missing folders. Follows no symbolic link below root.
Result<Fd> open_folder(const std::string& root, const std::vector<std::string>& parts, const std::string& shown,
                       const BeforeFolder& before) {
  RILLE_CHECK(make_directories(root));
  Fd folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return errno_error("cannot open", root, errno);
  for (const std::string& part : parts) {
    if (before && ::faccessat(folder.get(), part.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) < 0) RILLE_CHECK(before());
    if (::mkdirat(folder.get(), part.c_str(), 0777) < 0 && errno != EEXIST)
      return errno_error("cannot make", shown, errno);
    Fd inner(::openat(folder.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!inner.valid() && (errno == ELOOP || errno == ENOTDIR))
      return leads_out(shown, fmt::format("needs a folder '{}', but that is a link or a file", part).c_str());
    if (!inner.valid()) return errno_error("cannot open", shown, errno);
    folder = std::move(inner);
  }
  return folder;
}

}  // namespace

Result<> check_relative(std::string_view path) {
  if (path.empty()) return leads_out(path, "is empty");
  if (path.size() > path_bytes_max) return leads_out(path, "is longer than 4096 bytes");
  if (path.front() == '/') return leads_out(path, "is absolute");
  if (path.find('\0') != path.npos) return leads_out(path, "has a zero byte");
  for (const std::string& part : parts_of(path)) {
    if (part == ".." || part == ".") return leads_out(path, "has a part '.' or '..'");
    if (part.empty()) return leads_out(path, "has an empty part");
    if (part.size() > name_bytes_max) return leads_out(path, "has a part longer than 255 bytes");
  }
  return success();
}

Result<> make_directory_beneath(const std::string& root, std::string_view path, const BeforeFolder& before) {
  RILLE_CHECK(check_relative(path));
  RILLE_TRY(Fd folder, open_folder(root, parts_of(path), fmt::format("{}/{}", root, path), before));
  return success();
}

Result<FileBeneath> FileBeneath::at(const std::string& root, std::string_view path, const BeforeFolder& before) {
  RILLE_CHECK(check_relative(path));
  std::string shown = fmt::format("{}/{}", root, path);
  auto parts = parts_of(path);
  std::string name = std::move(parts.back());
  parts.pop_back();
  RILLE_TRY(Fd folder, open_folder(root, parts, shown, before));
  return FileBeneath(std::move(folder), std::move(name), std::move(shown));
}

Result<Fd> FileBeneath::open(int flags, const std::string& suffix, mode_t mode) const {
  Fd fd(::openat(folder_.get(), (name_ + suffix).c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode));
  if (fd.valid()) return fd;
  if (errno == ELOOP) return leads_out(shown_ + suffix, "is a symbolic link");
  return errno_error("cannot open", shown_ + suffix, errno);
}

std::optional<struct stat> FileBeneath::look(const std::string& suffix) const {
  struct stat st {};
  const int rc = ::fstatat(folder_.get(), (name_ + suffix).c_str(), &st, AT_SYMLINK_NOFOLLOW);
  return rc == 0 && S_ISREG(st.st_mode) ? std::optional(st) : std::nullopt;
}

Result<> FileBeneath::replace_by(const std::string& suffix) const {
  if (::renameat(folder_.get(), (name_ + suffix).c_str(), folder_.get(), name_.c_str()) < 0)
    return errno_error("cannot replace", shown_, errno);
  if (::fsync(folder_.get()) < 0) return errno_error("cannot write", shown_, errno);
  return success();
}

void FileBeneath::remove(const std::string& suffix) const { ::unlinkat(folder_.get(), (name_ + suffix).c_str(), 0); }

Result<> FileBeneath::make_link(const std::string& target) const {
  if (::symlinkat(target.c_str(), folder_.get(), name_.c_str()) < 0) return errno_error("cannot make", shown_, errno);
  return success();
}

std::int64_t free_bytes_at(int fd) {
  struct statvfs fs {};
  if (::fstatvfs(fd, &fs) < 0) return 0;
  return static_cast<std::int64_t>(fs.f_bavail * fs.f_frsize);
}

}  // namespace rille::store
