// The bytes of an archive file for libarchive, in pieces. Bytes that are compressed with gzip are decompressed here, by
// zlib, which compares checksums: libarchive skips those of gzip. Any thread; one object belongs to one thread. These
// calls block.
#pragma once

#include <zlib.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/store/file.hpp"

struct archive;

namespace rille::store {

// A way of compressing files.
struct Compression {
  std::string_view magic;   // the first bytes of such a file
  std::string_view suffix;  // of such a file's name
};

class ArchiveBytes {
 public:
  // `stop`: set by any thread to end reading with the error `cancelled`; it must outlive the object.
  static Result<std::unique_ptr<ArchiveBytes>> open(const std::string& path, const std::atomic<bool>& stop);
  ArchiveBytes(const ArchiveBytes&) = delete;
  ~ArchiveBytes();

  // Makes `reader` read from this object, which must outlive it, and opens it. Returns libarchive's result.
  int feed(::archive* reader);
  // Why reading has failed; the reader then fails, too, with an error that says less.
  const std::optional<Error>& failure() const { return failure_; }
  Error cancelled() const;

  const std::string& path() const { return path_; }
  std::string_view head() const { return {head_, head_size_}; }    // the file's first bytes
  const Compression* compression() const { return compression_; }  // null: none that is known
  bool decompresses() const { return gzip_.has_value(); }

 private:
  ArchiveBytes(std::string path, Fd fd, const std::atomic<bool>& stop)
      : path_(std::move(path)), fd_(std::move(fd)), stop_(stop) {}
  Result<std::string_view> read();  // "": the end
  Result<std::string_view> read_file_piece();
  Result<std::string_view> inflate_piece();
  Result<> next_member();
  Error damaged(const char* why) const;

  static constexpr std::size_t piece_bytes = 256 << 10;
  std::string path_;
  Fd fd_;
  const std::atomic<bool>& stop_;
  char head_[512];
  std::size_t head_size_ = 0;
  const Compression* compression_ = nullptr;
  std::string piece_, inflated_;
  std::optional<z_stream> gzip_;
  bool member_ended_ = false;  // and no other has begun
  std::optional<Error> failure_;
};

}  // namespace rille::store
