#include "runtime/workflow/agent/pull_part.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/process_tree.hpp"

namespace rille::agent {

namespace {
constexpr std::int64_t note_line_bytes_max = 16 << 10;
constexpr std::int64_t reserved_bytes_min = 1 << 20;  // less is not worth the file system's work of reserving
constexpr std::size_t shown_name_bytes_max = 200;  // of the destination's name, so that the part's name is not too long

std::int64_t free_bytes_at(const std::string& folder) {
  struct statvfs fs {};
  if (::statvfs(folder.c_str(), &fs) != 0) return 0;
  return static_cast<std::int64_t>(fs.f_bavail) * static_cast<std::int64_t>(fs.f_frsize);
}
}  // namespace

PullPart::PullPart(std::string destination, const std::string& key) : destination_(std::move(destination)) {
  const std::size_t name = destination_.rfind('/') + 1;
  path_ = fmt::format("{}.{}.pull-{}", destination_.substr(0, name), destination_.substr(name, shown_name_bytes_max),
                      sha256_hex(destination_.substr(name) + '\0' + key).substr(0, 16));
  note_path_ = path_ + ".note";
}

bool PullPart::resume(PullObject& object) {
  const auto text = store::read_file(note_path_, note_line_bytes_max + static_cast<std::int64_t>(parts_max));
  const std::size_t line_end = text ? text->find('\n') : std::string::npos;
  if (line_end == std::string::npos) return false;
  const auto note = Value::from_json(text->substr(0, line_end));
  if (!note) return false;
  PullObject found{note->text("key"), note->text("version"), note->text("validator"), note->integer("size"),
                   note->integer("part_bytes")};
  std::string states = text->substr(line_end + 1);
  const bool fits = found.key == object.key && found.version == object.version &&
                    (object.size_bytes < 0 || found.size_bytes == object.size_bytes) &&
                    !(found.version.empty() && found.validator.empty()) && found.size_bytes > 0 &&
                    found.part_bytes > 0 && states.size() == found.parts();
  if (!fits) return false;
  store::Fd fd(::open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0 || st.st_size != found.size_bytes) return false;
  const bool same_boot = note->text("boot") == boot_id();
  for (char& state : states)
    if (state != '2' && !(state == '1' && same_boot)) state = '0';
  fd_ = std::move(fd);
  states_ = std::move(states);
  object = std::move(found);
  return write_note(object).ok();
}

Result<> PullPart::check_room(std::int64_t size_bytes) const {
  const std::int64_t free = free_bytes_at(store::parent_path(destination_));
  if (size_bytes <= free) return success();
  Error e = make_error(ErrorKind::quota,
                       fmt::format("'{}' needs {}, but the machine's disk has only {} free", destination_,
                                   format_size_bytes(size_bytes), format_size_bytes(free)),
                       "rent with a larger disk, or remove files there");
  e.code = "disk_full";
  return e;
}

Error PullPart::disk_error(std::int64_t bytes, int errno_value) const {
  Error failed = errno_error("cannot write", path_, errno_value);
  if (errno_value != ENOSPC && errno_value != EDQUOT) return failed;
  Error e =
      make_error(ErrorKind::quota,
                 fmt::format("the machine's disk has no room for {} of '{}'", format_size_bytes(bytes), destination_),
                 "rent with a larger disk, or remove files there");
  e.code = "disk_full";
  return std::move(e).with_cause(std::move(failed));
}

Result<> PullPart::begin(const PullObject& object) {
  discard();
  fd_ = store::Fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd_.valid()) return disk_error(object.size_bytes, errno);
  if (object.size_bytes > 0) {
    RILLE_CHECK(check_room(object.size_bytes));
    // Some file systems cannot reserve; on these a full disk is noticed when writing.
    const bool small = object.size_bytes < reserved_bytes_min && object.parts() == 1;
    const int failed = small || ::fallocate(fd_.get(), 0, 0, object.size_bytes) == 0 ? 0 : errno;
    if (failed == ENOSPC || failed == EDQUOT) return disk_error(object.size_bytes, failed);
    if (failed && ::ftruncate(fd_.get(), object.size_bytes) != 0) return disk_error(object.size_bytes, errno);
  }
  states_.assign(object.parts(), '0');
  return states_.size() > 1 ? write_note(object) : success();
}

Result<> PullPart::write_note(const PullObject& object) {
  Value line;
  line.set("key", object.key).set("version", object.version).set("validator", object.validator);
  line.set("size", object.size_bytes).set("part_bytes", object.part_bytes).set("boot", boot_id());
  const std::string text = line.to_json() + "\n";
  states_at_ = static_cast<std::int64_t>(text.size());
  RILLE_CHECK(store::write_file_atomic(note_path_, text + states_));
  note_ = store::Fd(::open(note_path_.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  return note_.valid() ? success() : Result<>(errno_error("cannot open", note_path_, errno));
}

Result<> PullPart::write(std::int64_t offset, std::string_view bytes) const {
  const int failed = store::write_all_at(fd_.get(), bytes, offset);
  return failed ? Result<>(disk_error(static_cast<std::int64_t>(bytes.size()), failed)) : success();
}

Result<> PullPart::end_at(std::int64_t size_bytes) const {
  return ::ftruncate(fd_.get(), size_bytes) == 0 ? success() : Result<>(disk_error(0, errno));
}

// A mark that cannot be written is a part that a later pull fetches again.
void PullPart::mark(std::size_t part) {
  states_[part] = '1';
  if (note_.valid()) (void)!::pwrite(note_.get(), "1", 1, states_at_ + static_cast<std::int64_t>(part));
}

std::vector<std::size_t> PullPart::missing() const {
  std::vector<std::size_t> out;
  for (std::size_t part = 0; part < states_.size(); ++part)
    if (states_[part] == '0') out.push_back(part);
  return out;
}

Result<std::string> PullPart::digest(std::int64_t begin, std::int64_t end) const {
  Sha256 hash;
  std::vector<char> block(1 << 20);
  for (std::int64_t at = begin; at < end;) {
    const auto most =
        static_cast<std::size_t>(std::min<std::int64_t>(static_cast<std::int64_t>(block.size()), end - at));
    const ssize_t n = ::pread(fd_.get(), block.data(), most, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno_error("cannot read", path_, n < 0 ? errno : EIO);
    hash.update(std::string_view(block.data(), static_cast<std::size_t>(n)));
    at += n;
  }
  const Digest digest = hash.finish();
  std::string out;
  out.assign(digest.begin(), digest.end());  // GCC 12 warns of the constructor
  return out;
}

Result<> PullPart::sync(const std::vector<std::size_t>& marked) const {
  if (::fdatasync(fd_.get()) != 0) return disk_error(0, errno);
  for (std::size_t part : marked) (void)!::pwrite(note_.get(), "2", 1, states_at_ + static_cast<std::int64_t>(part));
  return success();
}

void PullPart::start_writing() {
  if (!fd_.valid()) fd_ = store::Fd(::open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));  // a copy of the cache's
  (void)::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
}

Result<> PullPart::sync_whole() { return ::fdatasync(fd_.get()) == 0 ? success() : Result<>(disk_error(0, errno)); }

Result<> PullPart::rename_into_place() {
  if (::rename(path_.c_str(), destination_.c_str()) != 0)
    return errno_error("cannot rename into place", destination_, errno);
  ::unlink(note_path_.c_str());
  return success();
}

void PullPart::discard() {
  ::unlink(note_path_.c_str());
  ::unlink(path_.c_str());
  fd_ = store::Fd();
  note_ = store::Fd();
  states_.clear();
}

}  // namespace rille::agent
