#include "runtime/core/store/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/units.hpp"

namespace rille::store {

namespace {

Result<struct stat> stat_regular(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return errno_error("cannot look at", path, errno);
  if (S_ISDIR(info.st_mode)) return errno_error("cannot read", path, EISDIR);
  return info;
}

}  // namespace

Fd& Fd::operator=(Fd&& o) noexcept {
  if (this != &o) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = o.release();
  }
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Result<> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno_error("cannot write", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return success();
}

int write_all_at(int fd, std::string_view bytes, std::int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(done));
    offset += done;
  }
  return 0;
}

std::string parent_path(const std::string& path) {
  std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

Result<FileWriter> FileWriter::create(const std::string& path, std::int64_t size_bytes, mode_t mode) {
  std::string temporary = fmt::format("{}.tmp-{}", path, random_hex(6));
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd.valid()) return errno_error("cannot create", path, errno);
  FileWriter writer(path, std::move(temporary), std::move(fd));
  if (size_bytes > 0) {
    // Some file systems cannot preallocate; on these a full disk is noticed only when writing.
    int failed = ::fallocate(writer.fd_.get(), FALLOC_FL_KEEP_SIZE, 0, size_bytes) == 0 ? 0 : errno;
    if (failed && failed != EOPNOTSUPP && failed != ENOSYS && failed != EINTR)
      return errno_error(fmt::format("cannot allocate {} for", format_size_bytes(size_bytes)), path, failed);
  }
  return writer;
}

FileWriter::~FileWriter() {
  if (fd_.valid()) ::unlink(temporary_.c_str());
}

Result<> FileWriter::write(std::string_view bytes) { return write_all(fd_.get(), bytes, path_); }

Result<> FileWriter::rewrite(std::int64_t offset, std::string_view bytes) {
  if (const int failed = write_all_at(fd_.get(), bytes, offset)) return errno_error("cannot write", path_, failed);
  return success();
}

Result<> FileWriter::commit() {
  if (::fdatasync(fd_.get()) != 0) return errno_error("cannot sync", path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_error("cannot rename into place", path_, errno);
  fd_ = Fd();
  return sync_directory(parent_path(path_));
}

Result<> write_file_atomic(const std::string& path, std::string_view bytes, mode_t mode) {
  RILLE_TRY(FileWriter writer, FileWriter::create(path, static_cast<std::int64_t>(bytes.size()), mode));
  RILLE_CHECK(writer.write(bytes));
  return writer.commit();
}

Result<std::string> read_file(const std::string& path, std::int64_t size_bytes_max) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("cannot open", path, errno);
  RILLE_TRY(struct stat info, stat_regular(fd.get(), path));
  auto limit = static_cast<std::size_t>(size_bytes_max);
  std::string out;
  // st_size is only a guess (files under /proc report 0, and a file may grow), so read until the end. Files under
  // /proc/sys give all that they have to the first read, or less than that, if it asks for less, and then nothing.
  constexpr std::size_t page = 4096;
  std::size_t room = std::max(std::min(static_cast<std::size_t>(info.st_size), limit) + 1, page);
  for (std::size_t used = 0;; room = out.size() + 65536) {
    out.resize(std::max(room, used + 1));
    ssize_t got = ::read(fd.get(), out.data() + used, out.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("cannot read", path, errno);
    used += static_cast<std::size_t>(got);
    if (used > limit)
      return make_error(
          ErrorKind::io,
          fmt::format("cannot read '{}': it is larger than the limit of {}", path, format_size_bytes(size_bytes_max)),
          "the limit is fixed: check that this is the right file");
    if (got == 0) {
      out.resize(used);
      return out;
    }
  }
}

Result<> sync_directory(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("cannot open directory", path, errno);
  // EINVAL: the file system cannot sync a directory, and there is no alternative, so ignore the error.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return errno_error("cannot sync directory", path, errno);
  return success();
}

Result<> make_directories(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (!failed && !std::filesystem::is_directory(path, failed) && !failed)
    return errno_error("cannot make directory", path, ENOTDIR);
  if (failed) return errno_error("cannot make directory", path, failed.value());
  return success();
}

Result<> make_private_directory(const std::string& path) {
  std::filesystem::path name(path);
  if (!name.has_filename()) name = name.parent_path();  // "home/"
  if (name.has_parent_path()) RILLE_CHECK(make_directories(name.parent_path()));
  if (::mkdir(name.c_str(), 0700) == 0) return success();
  const int failed = errno;
  std::error_code ignored;
  if (failed == EEXIST && std::filesystem::is_directory(name, ignored)) return success();
  return errno_error("cannot make directory", path, failed == EEXIST ? ENOTDIR : failed);
}

Result<> remove_tree(const std::string& path) {
  std::error_code failed;
  do std::filesystem::remove_all(path, failed);
  // repeat: another process removed a file of the tree meanwhile
  while (failed == std::errc::no_such_file_or_directory);
  if (failed) return errno_error("cannot remove", path, failed.value());
  return success();
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("cannot open", path, errno);
  RILLE_TRY(struct stat info, stat_regular(fd.get(), path));
  MappedFile map;
  if (info.st_size == 0) return map;  // leave the map empty, because mmap refuses a length of 0
  auto size = static_cast<std::size_t>(info.st_size);
  void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (bytes == MAP_FAILED) return errno_error("cannot map", path, errno);
  map.data_ = static_cast<const char*>(bytes);
  map.size_ = size;
  return map;
}

MappedFile::MappedFile(MappedFile&& o) noexcept : data_(std::exchange(o.data_, "")), size_(std::exchange(o.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& o) noexcept {
  if (this != &o) {
    unmap();
    data_ = std::exchange(o.data_, "");
    size_ = std::exchange(o.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() { unmap(); }

void MappedFile::unmap() {
  if (size_) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace rille::store
