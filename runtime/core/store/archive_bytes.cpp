#include "runtime/core/store/archive_bytes.hpp"

#include <archive.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace rille::store {

namespace {

using namespace std::string_view_literals;

constexpr std::array compressions = {
    Compression{"\x1f\x8b"sv, ".gz"},
    Compression{"\xfd"
                "7zXZ\0"sv,
                ".xz"},
    Compression{"BZh"sv, ".bz2"},
    Compression{"\x28\xb5\x2f\xfd"sv, ".zst"},
    Compression{"\x04\x22\x4d\x18"sv, ".lz4"},
};
constexpr int gzip_window = 15 + 16;  // zlib: the largest window; with gzip's header and trailer

Result<std::size_t> read_some(int fd, char* into, std::size_t size, const std::string& path) {
  while (true) {
    const ssize_t n = ::read(fd, into, size);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR) return errno_error("read", path, errno);
  }
}

}  // namespace

Result<std::unique_ptr<ArchiveBytes>> ArchiveBytes::open(const std::string& path, const std::atomic<bool>& stop) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("open", path, errno);
  std::unique_ptr<ArchiveBytes> out(new ArchiveBytes(path, std::move(fd), stop));
  for (std::size_t n = 1; n > 0 && out->head_size_ < sizeof head_;) {
    RILLE_TRY(n, read_some(out->fd_.get(), out->head_ + out->head_size_, sizeof head_ - out->head_size_, path));
    out->head_size_ += n;
  }
  if (::lseek(out->fd_.get(), 0, SEEK_SET) < 0) return errno_error("read", path, errno);
  for (const Compression& one : compressions)
    if (out->head().starts_with(one.magic)) out->compression_ = &one;
  out->piece_.resize(piece_bytes);
  if (out->compression_ != &compressions[0]) return out;
  out->inflated_.resize(piece_bytes);
  out->gzip_.emplace();
  if (::inflateInit2(&*out->gzip_, gzip_window) == Z_OK) return out;
  out->gzip_.reset();
  return make_error(ErrorKind::memory, "no memory to decompress '" + path + "'", "free some memory on this machine");
}

ArchiveBytes::~ArchiveBytes() {
  if (gzip_) ::inflateEnd(&*gzip_);
}

Error ArchiveBytes::cancelled() const {
  return make_error(ErrorKind::cancelled, "unpacking '" + path_ + "' was cancelled");
}

Error ArchiveBytes::damaged(const char* why) const {
  return make_error(ErrorKind::integrity, fmt::format("the archive '{}' is damaged: {}", path_, why),
                    "fetch it again, or compare its checksum with the one that its maker names");
}

Result<std::string_view> ArchiveBytes::read_file_piece() {
  RILLE_TRY(const std::size_t n, read_some(fd_.get(), piece_.data(), piece_.size(), path_));
  return std::string_view(piece_.data(), n);
}

// At the end of a gzip stream: another may follow, or zeros that fill a block.
Result<> ArchiveBytes::next_member() {
  while (gzip_->avail_in > 0 && *gzip_->next_in == 0) ++gzip_->next_in, --gzip_->avail_in;
  if (gzip_->avail_in == 0) return success();
  if (*gzip_->next_in != 0x1f) return damaged("other bytes follow the compressed ones");
  if (::inflateReset2(&*gzip_, gzip_window) != Z_OK) return damaged("its compressed bytes cannot be read");
  member_ended_ = false;
  return success();
}

Result<std::string_view> ArchiveBytes::inflate_piece() {
  gzip_->next_out = reinterpret_cast<Bytef*>(inflated_.data());
  gzip_->avail_out = static_cast<uInt>(inflated_.size());
  while (gzip_->avail_out == inflated_.size()) {
    if (gzip_->avail_in == 0) {
      RILLE_TRY(const std::string_view more, read_file_piece());
      if (more.empty() && member_ended_) return std::string_view();
      if (more.empty()) return damaged("its end is missing");
      gzip_->next_in = reinterpret_cast<Bytef*>(piece_.data());
      gzip_->avail_in = static_cast<uInt>(more.size());
    }
    if (member_ended_) RILLE_CHECK(next_member());
    if (member_ended_) continue;
    const int rc = ::inflate(&*gzip_, Z_NO_FLUSH);
    if (rc == Z_MEM_ERROR) return make_error(ErrorKind::memory, "no memory to decompress '" + path_ + "'");
    if (rc == Z_STREAM_END) member_ended_ = true;
    else if (rc != Z_OK && rc != Z_BUF_ERROR)
      return damaged(gzip_->msg ? gzip_->msg : "its compressed bytes are wrong");
  }
  return std::string_view(inflated_.data(), inflated_.size() - gzip_->avail_out);
}

Result<std::string_view> ArchiveBytes::read() {
  if (stop_.load(std::memory_order_relaxed)) return cancelled();
  return gzip_ ? inflate_piece() : read_file_piece();
}

int ArchiveBytes::feed(::archive* reader) {
  const auto read_piece = [](::archive* a, void* self, const void** bytes) -> la_ssize_t {
    auto& own = *static_cast<ArchiveBytes*>(self);
    auto piece = own.read();
    if (piece) {
      *bytes = piece->data();
      return static_cast<la_ssize_t>(piece->size());
    }
    own.failure_ = std::move(piece).error();
    ::archive_set_error(a, EIO, "the file cannot be read");
    return ARCHIVE_FATAL;
  };
  const auto seek = [](::archive*, void* self, la_int64_t offset, int whence) -> la_int64_t {
    const off_t at = ::lseek(static_cast<ArchiveBytes*>(self)->fd_.get(), offset, whence);
    return at < 0 ? ARCHIVE_FATAL : at;
  };
  ::archive_read_set_callback_data(reader, this);
  ::archive_read_set_read_callback(reader, read_piece);
  if (!gzip_) ::archive_read_set_seek_callback(reader, seek);
  return ::archive_read_open1(reader);
}

}  // namespace rille::store
