// Atomic files. FileWriter writes beside its destination and renames at commit, so that a reader finds the complete old
// bytes or the complete new ones; a crash leaves at most a temporary file with ".tmp-" in its name. MappedFile maps a
// file into memory. Every failure is an `io` error from errno_error (base/error.hpp) that names the path. Any thread;
// one object belongs to one thread at a time. These calls block.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::store {

// Owns a file descriptor and closes it.
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

// Writes all bytes, despite interrupts and short writes. `path` is only for the error message.
Result<> write_all(int fd, std::string_view bytes, const std::string& path);

// The same at an offset, for callers with messages of their own: 0, or the errno of the failure.
int write_all_at(int fd, std::string_view bytes, std::int64_t offset);

class FileWriter {
 public:
  // Creates "<path>.tmp-<random>". With size_bytes > 0, reserves that disk space now, so that a full disk is an error
  // of create.
  static Result<FileWriter> create(const std::string& path, std::int64_t size_bytes = 0, mode_t mode = 0644);
  FileWriter(FileWriter&&) noexcept = default;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();  // removes the temporary file if commit() did not succeed

  Result<> write(std::string_view bytes);
  // Replaces bytes that were written before: a header that has what is known at the end.
  Result<> rewrite(std::int64_t offset, std::string_view bytes);
  // Syncs the data, renames the temporary file to `path` and syncs the directory: after success the bytes survive a
  // power cut.
  Result<> commit();
  const std::string& path() const { return path_; }

 private:
  FileWriter(std::string path, std::string temporary, Fd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}
  std::string path_, temporary_;
  Fd fd_;
};

// Replaces the file at `path` by one with these bytes, as FileWriter does.
Result<> write_file_atomic(const std::string& path, std::string_view bytes, mode_t mode = 0644);

// Reads the whole file. Error `io`: the file is missing, unreadable, or larger than size_bytes_max (the message says
// so).
Result<std::string> read_file(const std::string& path, std::int64_t size_bytes_max = std::int64_t{1} << 30);

// Syncs a directory: after success its entries survive a power cut.
Result<> sync_directory(const std::string& path);
// Creates the directory and its missing parents.
Result<> make_directories(const std::string& path);
// The same; the directory, but not its parents, gets mode 0700. One that exists keeps its mode.
Result<> make_private_directory(const std::string& path);
// Removes a file or a directory tree; also succeeds if there is none. Several processes may remove one tree at once.
Result<> remove_tree(const std::string& path);
// The directory part of a path; "." for a path without a slash.
std::string parent_path(const std::string& path);

// A read-only private memory map of a whole regular file, which may be empty. The bytes live as long as the object. If
// another process truncates the file, an access raises SIGBUS, so map only files that are replaced, never edited.
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
