#include "runtime/core/store/unpack.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <locale.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "runtime/core/base/places.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/store/archive_bytes.hpp"
#include "runtime/core/store/beneath.hpp"

namespace rille::store {

namespace {

constexpr std::int64_t disk_reserve_bytes = 64 << 20, disk_step_bytes = 16 << 20, folder_bytes = 4096;
constexpr int lock_wait_ms = 20;
constexpr std::size_t copy_bytes = 256 << 10;
constexpr const char* known_kinds =
    "these can be unpacked: tar, also compressed with gzip, xz, bzip2, zstd or lz4; zip; one file compressed so";

locale_t utf8_locale(const std::string& bundle = {}) {
  static const locale_t once = [&] {
    const auto load = [] { return ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr); };
    locale_t found = load();
    if (found || bundle.empty() || std::getenv("LOCPATH")) return found;
    ::setenv("LOCPATH", (bundle + "/share/rille/locale").c_str(), 0);
    found = load();
    ::unsetenv("LOCPATH");
    return found;
  }();
  return once;
}

// libarchive converts names to the thread's locale; to UTF-8 it passes them on.
class InUtf8 {
 public:
  InUtf8() : before_(::uselocale(utf8_locale())) {}  // null: no change
  ~InUtf8() { ::uselocale(before_); }
  InUtf8(const InUtf8&) = delete;

 private:
  locale_t before_;
};

struct FreeReader {
  void operator()(::archive* reader) const { ::archive_read_free(reader); }
};

std::string printable(std::string_view name) {
  std::string out(name.substr(0, 200));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return out;
}

// Without "." and empty parts, which archivers write: "./a//b/" is "a/b". An absolute name stays absolute.
std::string plain_name(std::string_view name) {
  std::string out;
  if (name.starts_with('/')) return std::string(name);
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (!part.empty() && part != ".") out.append(out.empty() ? "" : "/").append(part);
    begin = end + 1;
  }
  return out;
}

// unpack.hpp says why such links stay beneath the folder.
bool stays_beneath(const std::string& name, const std::string& target) {
  if (target.empty() || target.front() == '/') return false;
  auto folders = std::count(name.begin(), name.end(), '/');
  const std::string plain = plain_name(target);
  std::string_view rest = plain;
  for (; rest == ".." || rest.starts_with("../"); rest.remove_prefix(std::min<std::size_t>(3, rest.size())))
    if (--folders < 0) return false;
  return rest.empty() || check_relative(rest).ok();
}

class Unpacker {
 public:
  Unpacker(std::string folder, const std::atomic<bool>& stop, const Room& room)
      : folder_(std::move(folder)), stop_(stop), room_(room) {}
  Result<> open(const std::string& archive);
  Result<Unpacked> unpack_all();

 private:
  Error failed() const;
  Error unknown() const;
  Error refused(const std::string& name, const char* what) const;
  Result<> lock_folder();
  Result<std::string> single_name() const;
  Result<std::string> name_of(archive_entry* entry) const;
  Result<> take(archive_entry* entry);
  Result<> take_file(const std::string& name, archive_entry* entry);
  Result<> take_link(const std::string& name, const char* target);
  Result<> take_copy(const std::string& name, const std::string& source);
  Result<std::int64_t> write_blocks(const FileBeneath& file, int fd);
  Result<> count(std::int64_t& entries) const;
  Result<FileBeneath> file_at(const std::string& name);
  Result<> grow(const std::string& shown, int place, std::int64_t bytes);
  Error full(const std::string& shown, std::int64_t bytes, std::int64_t free_bytes) const;

  std::string folder_;
  const std::atomic<bool>& stop_;
  const Room& room_;
  std::unique_ptr<ArchiveBytes> bytes_;  // outlives the reader
  std::unique_ptr<::archive, FreeReader> reader_;
  Fd locked_;
  // Called before a folder is made.
  const BeforeFolder before_folder_ = [this]() -> Result<> {
    RILLE_CHECK(count(folders_));
    return grow(folder_, locked_.get(), folder_bytes);
  };
  std::int64_t entries_ = 0, folders_ = 0,
               checked_bytes_ = 0;  // checked_bytes_: what the disk was found to have room for
  Unpacked sum_;
};

Error Unpacker::failed() const {
  if (bytes_->failure()) return *bytes_->failure();
  if (::archive_errno(reader_.get()) == ENOMEM)
    return make_error(ErrorKind::memory, "no memory to unpack '" + bytes_->path() + "'",
                      "free some memory on this machine");
  const char* why = ::archive_error_string(reader_.get());
  return make_error(ErrorKind::integrity,
                    fmt::format("the archive '{}' is damaged: {}", bytes_->path(), printable(why ? why : "unknown")),
                    "fetch it again, or compare its checksum with the one that its maker names");
}

// libarchive does not know the format.
Error Unpacker::unknown() const {
  if (bytes_->failure()) return *bytes_->failure();
  const std::string_view head = bytes_->head();
  const bool begins_as_one =
      head.starts_with("PK\x03\x04") || bytes_->compression() || (head.size() > 262 && head.substr(257, 5) == "ustar");
  if (begins_as_one)
    return make_error(ErrorKind::integrity,
                      fmt::format("the archive '{}' is damaged: it begins as one, but its {}", bytes_->path(),
                                  head.starts_with("PK") ? "list of files at the end is missing" : "rest is none"),
                      "fetch it again, or compare its checksum with the one that its maker names");
  return make_error(ErrorKind::invalid,
                    fmt::format("'{}' is {}", bytes_->path(), head.empty() ? "empty" : "no archive of a known kind"),
                    known_kinds);
}

Error Unpacker::refused(const std::string& name, const char* what) const {
  return make_error(ErrorKind::invalid,
                    fmt::format("the archive '{}' holds '{}', {}", bytes_->path(), printable(name), what),
                    "pack it again without that, or unpack it by a program of your own");
}

Result<> Unpacker::open(const std::string& archive) {
  RILLE_TRY(bytes_, ArchiveBytes::open(archive, stop_));
  reader_.reset(::archive_read_new());
  ::archive* const r = reader_.get();
  if (!r) return make_error(ErrorKind::memory, "no memory to unpack '" + archive + "'");
  for (auto support :
       {::archive_read_support_format_tar, ::archive_read_support_format_zip_seekable,
        ::archive_read_support_format_raw, ::archive_read_support_filter_xz, ::archive_read_support_filter_bzip2,
        ::archive_read_support_filter_zstd, ::archive_read_support_filter_lz4})
    if (support(r) != ARCHIVE_OK) return failed();
  // Reads on behind the end of a tar, so that the checksum at the end of the compressed bytes is compared, too.
  if (::archive_read_set_option(r, "tar", "read_concatenated_archives", "1") != ARCHIVE_OK) return failed();
  if (bytes_->feed(r) != ARCHIVE_OK) return unknown();
  const int decompressors = ::archive_filter_count(r) - 1 + (bytes_->decompresses() ? 1 : 0);
  if (decompressors > 1)
    return make_error(ErrorKind::invalid, fmt::format("'{}' is compressed {} times", archive, decompressors),
                      "compress it once");
  return success();
}

Result<> Unpacker::lock_folder() {
  RILLE_CHECK(make_directories(folder_));
  locked_ = Fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!locked_.valid()) return errno_error("open", folder_, errno);
  while (::flock(locked_.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno != EINTR && errno != EWOULDBLOCK) return errno_error("lock", folder_, errno);
    if (stop_.load(std::memory_order_relaxed)) return bytes_->cancelled();
    ::poll(nullptr, 0, lock_wait_ms);
  }
  return success();
}

Result<Unpacked> Unpacker::unpack_all() {
  while (true) {
    archive_entry* entry = nullptr;
    const int rc = ::archive_read_next_header(reader_.get(), &entry);
    if (rc == ARCHIVE_EOF) break;
    if (rc < ARCHIVE_WARN) return failed();  // a warning: a name that is not of its character set
    if (!locked_.valid()) {
      if (::archive_format(reader_.get()) == ARCHIVE_FORMAT_RAW) RILLE_CHECK(single_name());
      RILLE_CHECK(lock_folder());
    }
    RILLE_CHECK(take(entry));
  }
  if (!locked_.valid()) RILLE_CHECK(lock_folder());  // no entries: an empty folder
  if (::syncfs(locked_.get()) < 0) return errno_error("write", folder_, errno);
  return sum_;
}

// The name of the file in an archive that is one compressed file.
Result<std::string> Unpacker::single_name() const {
  if (!bytes_->compression()) return unknown();
  std::string name = bytes_->path().substr(bytes_->path().rfind('/') + 1);
  const std::string_view suffix = bytes_->compression()->suffix;
  if (name.ends_with(".tar" + std::string(suffix))) return unknown();
  if (!name.ends_with(suffix) || name.size() == suffix.size())
    return make_error(ErrorKind::invalid,
                      fmt::format("'{}' holds no tar archive, and as one compressed file its name should end in {}",
                                  bytes_->path(), suffix),
                      known_kinds);
  name.resize(name.size() - suffix.size());
  return name;
}

Result<std::string> Unpacker::name_of(archive_entry* entry) const {
  if (::archive_format(reader_.get()) == ARCHIVE_FORMAT_RAW) return single_name();
  const char* const name = ::archive_entry_pathname(entry);
  if (name) return plain_name(name);
  if (utf8_locale()) return failed();
  return make_error(
      ErrorKind::config,
      fmt::format("the archive '{}' names a file in UTF-8, and this machine has no locale C.UTF-8", bytes_->path()),
      "install one (Debian: libc-bin), or pack the files as tar");
}

Result<> Unpacker::count(std::int64_t& entries) const {
  if (++entries <= unpacked_entries_max) return success();
  Error e = make_error(ErrorKind::quota,
                       fmt::format("the archive '{}' holds more than {} files and folders (unpacked_entries_max)",
                                   bytes_->path(), unpacked_entries_max),
                       "pack the files into fewer and larger ones");
  e.code = "unpacked_entries";
  return e;
}

Result<FileBeneath> Unpacker::file_at(const std::string& name) {
  return FileBeneath::at(folder_, name, before_folder_);
}

Result<> Unpacker::take(archive_entry* entry) {
  if (stop_.load(std::memory_order_relaxed)) return bytes_->cancelled();
  RILLE_CHECK(count(entries_));
  RILLE_TRY(const std::string name, name_of(entry));
  const auto type = ::archive_entry_filetype(entry);
  if (name.empty() && type == AE_IFDIR) return success();  // "./", the folder itself
  RILLE_CHECK(check_relative(name));
  if (const char* source = ::archive_entry_hardlink(entry)) return take_copy(name, plain_name(source));
  if (::archive_entry_is_encrypted(entry) > 0) return refused(name, "which is encrypted");
  switch (type) {
    case AE_IFDIR: return make_directory_beneath(folder_, name, before_folder_);
    case AE_IFREG: return take_file(name, entry);
    case AE_IFLNK: return take_link(name, ::archive_entry_symlink(entry));
    case AE_IFCHR: return refused(name, "a character device");
    case AE_IFBLK: return refused(name, "a block device");
    case AE_IFIFO: return refused(name, "a pipe");
    case AE_IFSOCK: return refused(name, "a socket");
    default: return refused(name, "which is neither a file nor a folder nor a link");
  }
}

Error Unpacker::full(const std::string& shown, std::int64_t bytes, std::int64_t free_bytes) const {
  Error e = make_error(ErrorKind::quota,
                       fmt::format("no room to unpack '{}': '{}' needs {} more, the disk has {} free and keeps {}",
                                   bytes_->path(), printable(shown), format_size_bytes(bytes),
                                   format_size_bytes(free_bytes), format_size_bytes(disk_reserve_bytes)),
                       "free some space on that disk, or rent a machine with a larger one");
  e.code = "disk_full";
  return e;
}

// Called before that many bytes more are written to the file system that holds `place`.
Result<> Unpacker::grow(const std::string& shown, int place, std::int64_t bytes) {
  if (bytes > checked_bytes_) {
    const std::int64_t free_bytes = free_bytes_at(place);
    if (bytes > free_bytes - disk_reserve_bytes) return full(shown, bytes, free_bytes);
    checked_bytes_ = std::min(free_bytes - disk_reserve_bytes, bytes + disk_step_bytes);
  }
  if (room_) RILLE_CHECK(room_(bytes));
  checked_bytes_ -= bytes;
  return success();
}

// Returns the file's size.
Result<std::int64_t> Unpacker::write_blocks(const FileBeneath& file, int fd) {
  std::int64_t size = 0, written = 0;
  while (true) {
    if (stop_.load(std::memory_order_relaxed)) return bytes_->cancelled();
    const void* block = nullptr;
    std::size_t n = 0;
    la_int64_t offset = 0;
    const int rc = ::archive_read_data_block(reader_.get(), &block, &n, &offset);
    if (rc == ARCHIVE_EOF) break;
    if (rc != ARCHIVE_OK) return failed();
    if (offset < size || static_cast<std::uint64_t>(INT64_MAX - offset) < n) return failed();
    const std::int64_t end = offset + static_cast<std::int64_t>(n);  // between size and offset there is a hole
    RILLE_CHECK(grow(file.shown(), fd, end - size));
    size = end;
    if (n == 0) continue;
    if (::lseek(fd, offset, SEEK_SET) < 0) return errno_error("write", file.shown(), errno);
    RILLE_CHECK(write_all(fd, {static_cast<const char*>(block), n}, file.shown()));
    written = end;
  }
  if (size > written && ::ftruncate(fd, size) < 0) return errno_error("write", file.shown(), errno);
  return size;
}

Result<> Unpacker::take_file(const std::string& name, archive_entry* entry) {
  RILLE_TRY(const FileBeneath file, file_at(name));
  const std::int64_t told = ::archive_entry_size_is_set(entry) ? ::archive_entry_size(entry) : 0;
  if (const std::int64_t free_bytes = told > 0 ? file.free_bytes() : 0; told > 0 && told > free_bytes)
    return full(file.shown(), told, free_bytes);
  file.remove("");
  const mode_t mode = ::archive_entry_perm(entry) & 0111 ? 0755 : 0644;
  RILLE_TRY(const Fd fd, file.open(O_WRONLY | O_CREAT | O_EXCL));
  auto size = write_blocks(file, fd.get());
  if (size && ::fchmod(fd.get(), mode) < 0) size = errno_error("write", file.shown(), errno);
  if (!size) {
    file.remove("");
    return std::move(size).error();
  }
  ++sum_.files;
  sum_.size_bytes += *size;
  return success();
}

Result<> Unpacker::take_link(const std::string& name, const char* target) {
  if (!target || !stays_beneath(name, target))
    return make_error(
        ErrorKind::integrity,
        fmt::format("the archive '{}' holds the link '{}' to '{}', which may lead out of the folder", bytes_->path(),
                    printable(name), printable(target ? target : "")),
        "links must be relative and may go up at their beginning only; pack the files themselves (tar -h)");
  RILLE_TRY(const FileBeneath file, file_at(name));
  file.remove("");
  RILLE_CHECK(file.make_link(target));
  ++sum_.files;
  return success();
}

Result<> Unpacker::take_copy(const std::string& name, const std::string& source) {
  RILLE_TRY(const FileBeneath from, file_at(source));
  const auto found = from.look();
  if (!found)
    return make_error(ErrorKind::integrity,
                      fmt::format("the archive '{}' holds the hard link '{}' to '{}', which is no file before it",
                                  bytes_->path(), printable(name), printable(source)),
                      "pack the whole folder anew");
  RILLE_TRY(const Fd in, from.open(O_RDONLY | O_NONBLOCK));
  RILLE_TRY(const FileBeneath file, file_at(name));
  file.remove("");
  RILLE_TRY(const Fd fd, file.open(O_WRONLY | O_CREAT | O_EXCL));
  auto copy = [&]() -> Result<> {
    std::string piece(copy_bytes, '\0');
    while (true) {
      if (stop_.load(std::memory_order_relaxed)) return bytes_->cancelled();
      const ssize_t n = ::read(in.get(), piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno_error("read", from.shown(), errno);
      if (n == 0) break;
      RILLE_CHECK(grow(file.shown(), fd.get(), n));
      RILLE_CHECK(write_all(fd.get(), {piece.data(), static_cast<std::size_t>(n)}, file.shown()));
      sum_.size_bytes += n;
    }
    if (::fchmod(fd.get(), found->st_mode & 0111 ? 0755 : 0644) < 0) return errno_error("write", file.shown(), errno);
    return success();
  };
  auto copied = copy();
  if (!copied) file.remove("");
  else ++sum_.files;
  return copied;
}

}  // namespace

Result<Unpacked> unpack(const std::string& archive, const std::string& folder, const std::atomic<bool>& stop,
                        const Room& room) {
  const InUtf8 names;
  Unpacker unpacker(folder, stop, room);
  RILLE_CHECK(unpacker.open(archive));
  return unpacker.unpack_all();
}

void load_archive_locale() { utf8_locale(bundle_folder()); }

}  // namespace rille::store
