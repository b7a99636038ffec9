// Atomic files. FileWriter writes beside its destination and renames at commit, so that a reader finds
// the old bytes or the new ones, never a part; a crash leaves at most a temporary file with ".tmp-" in
// its name. MappedFile maps a file into memory. Every failure is an io error from errno_error
// (base/error.hpp) that names the path. Any thread; one object belongs to one thread at a time. These
// calls block.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::store {

// Owns a descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& o) noexcept : fd_(o.release()) {}
  Fd& operator=(Fd&& o) noexcept;
  ~Fd();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() {
    int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_ = -1;
};

// Writes all bytes, despite interrupts and short writes. `path` is for the message.
Result<> write_all(int fd, std::string_view bytes, const std::string& path);

class FileWriter {
 public:
  // Creates "<path>.tmp-<random>". With size_bytes > 0 the space is allocated at once, so that a full disk fails
  // here.
  static Result<FileWriter> create(const std::string& path, std::int64_t size_bytes = 0, mode_t mode = 0644);
  FileWriter(FileWriter&&) noexcept = default;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();  // removes the temporary file unless committed

  Result<> write(std::string_view bytes);
  // fdatasync, rename over `path`, directory fsync: after success the bytes survive a power cut.
  Result<> commit();
  const std::string& path() const { return path_; }

 private:
  FileWriter(std::string path, std::string temporary, Fd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}
  std::string path_, temporary_;
  Fd fd_;
};

// create, write, commit.
Result<> write_file_atomic(const std::string& path, std::string_view bytes, mode_t mode = 0644);

// Reads the whole file. io: missing, unreadable, or larger than size_bytes_max (the message names the limit).
Result<std::string> read_file(const std::string& path, std::int64_t size_bytes_max = std::int64_t{1} << 30);

// After success the directory's entries survive a power cut.
Result<> sync_directory(const std::string& path);
// Creates the directory and its parents.
Result<> make_directories(const std::string& path);
// Removes a file or a tree; success when there is none. Concurrent removals of the same tree are safe.
Result<> remove_tree(const std::string& path);
// The directory part of a path; "." when it has none.
std::string parent_path(const std::string& path);

// A read-only private map of a whole regular file; empty files are legal. The bytes live as long as the object.
// If another process truncates the file, an access raises SIGBUS: map only files that are replaced, never
// edited.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& o) noexcept;
  MappedFile& operator=(MappedFile&& o) noexcept;
  ~MappedFile();

  const char* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }

 private:
  void unmap();
  const char* data_ = "";
  std::size_t size_ = 0;
};

}  // namespace rille::store
