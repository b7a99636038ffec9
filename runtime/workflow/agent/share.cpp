#include "runtime/workflow/agent/share.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/core/base/id.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::agent {

namespace {

constexpr std::size_t index_bytes = 4;

bool unchanged(const struct stat& now, const struct stat& then) {
  return now.st_dev == then.st_dev && now.st_ino == then.st_ino && now.st_size == then.st_size &&
         now.st_mtim.tv_sec == then.st_mtim.tv_sec && now.st_mtim.tv_nsec == then.st_mtim.tv_nsec;
}

bool is_as(int fd, const Share::Place& place) {
  struct stat now {};
  return ::fstat(fd, &now) == 0 && S_ISREG(now.st_mode) && (!place.as || unchanged(now, *place.as));
}

bool read_range(int fd, std::int64_t begin, std::string& out) {
  std::size_t have = 0;
  while (have < out.size()) {
    const ssize_t n =
        ::pread(fd, out.data() + have, out.size() - have, static_cast<off_t>(begin + static_cast<std::int64_t>(have)));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    have += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

std::string encode_digests(const PartDigests& digests) {
  std::string out;
  for (const auto& [part, digest] : digests) {
    for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>((part >> shift) & 255);
    out += digest;
  }
  return out;
}

Result<PartDigests> digests_from(std::string_view text) {
  PartDigests out;
  constexpr std::size_t each = index_bytes + digest_bytes;
  for (; text.size() >= each; text.remove_prefix(each)) {
    std::size_t part = 0;
    for (std::size_t i = index_bytes; i-- > 0;) part = part << 8 | static_cast<unsigned char>(text[i]);
    if (part >= share_parts_max) return make_error(ErrorKind::integrity, "a digest of a part that no object has");
    out[part] = text.substr(index_bytes, digest_bytes);
  }
  if (!text.empty()) return make_error(ErrorKind::integrity, "digests of parts that end in the middle of one");
  return out;
}

void Share::begin(std::int64_t size_bytes, std::string part_file, bool again) {
  took_ = took_ && again;
  size_bytes_ = size_bytes;
  part_file_ = std::move(part_file);
  const std::int64_t parts = size_bytes < 0 ? 0 : (size_bytes + part_bytes_ - 1) / part_bytes_;
  have_.assign(static_cast<std::size_t>(std::min<std::int64_t>(parts, share_parts_max)), false);
  whole_ = ended_ = false;
  got_bytes_ = 0;
  changed();
}

void Share::have(std::size_t part) {
  if (part < have_.size()) have_[part] = true;
  changed();
}

void Share::whole(std::int64_t size_bytes, std::string file) {
  struct stat now {};
  if (::stat(file.c_str(), &now) != 0) return end();
  size_bytes_ = size_bytes, file_ = std::move(file), stamp_ = now;
  whole_ = true;
  got_bytes_ = size_bytes;
  changed();
}

void Share::tell_object(std::int64_t size_bytes, const std::string& version) {
  Value told;
  told.set("share", id_).set("size", size_bytes).set("version", version);
  if (to_runner && size_bytes > 0) to_runner(std::move(told));
}

void Share::end() {
  ended_ = true;
  changed();
}

// What differs from what was found here is contradicted.
void Share::tell(const PartDigests& digests) {
  for (const auto& [part, digest] : digests) {
    digests_[part] = digest;
    if (const auto mine = own_.find(part); mine != own_.end() && mine->second != digest) send(part, mine->second);
  }
  changed();
}

void Share::dispute() {
  disputed_ = true;
  changed();
}

std::string Share::digest(std::size_t part) const {
  const auto it = digests_.find(part);
  return it == digests_.end() ? std::string() : it->second;
}

bool Share::is_part(std::int64_t begin, std::int64_t end) const {
  if (begin % part_bytes_ != 0 || end - begin > part_bytes_) return false;
  return size_bytes_ < 0 || end == std::min(size_bytes_, begin + part_bytes_);
}

std::vector<Share::Place> Share::places() const {
  if (!whole_) return {{part_file_, {}}};
  std::vector<Place> out{{file_, stamp_}};
  if (!copy_.empty()) out.push_back({copy_, {}});
  return out;
}

// The file is looked at before and after it is read: a program of the machine may write it meanwhile.
Result<Share::Part> Share::read_part(const std::vector<Place>& places, std::int64_t begin, std::int64_t end) {
  Part out;
  out.bytes.resize(static_cast<std::size_t>(end - begin));
  for (const Place& place : places) {
    const store::Fd fd(::open(place.file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid() || !is_as(fd.get(), place) || !read_range(fd.get(), begin, out.bytes) || !is_as(fd.get(), place))
      continue;
    const Digest digest = sha256(out.bytes);
    out.digest.assign(digest.begin(), digest.end());
    return out;
  }
  return make_error(ErrorKind::io, "the part is not there any more");
}

void Share::report(std::size_t part, const std::string& digest) {
  const bool again = own_.contains(part) && own_[part] == digest;
  own_[part] = digest;
  if (!again && this->digest(part) != digest) send(part, digest);
}

void Share::send(std::size_t part, const std::string& digest) const {
  Digest bytes{};
  std::copy_n(digest.begin(), std::min(digest.size(), bytes.size()), bytes.begin());
  Value told;
  told.set("share", id_).set("part", static_cast<std::int64_t>(part)).set("sha256", to_hex(bytes));
  if (to_runner) to_runner(std::move(told));
}

void Share::changed() {
  for (const auto& waiter : std::exchange(waiting_, {})) waiter.set(success());
}

Async<> Share::change(std::shared_ptr<Share> self, std::int64_t wait_ms, CancelToken token) {
  const Future<Result<>> done(self->loop_);
  self->waiting_.push_back(done);
  const Timer timer(self->loop_, wait_ms, [done] { done.set(success()); });
  auto registration = token.on_cancel([done](const Error& why) { done.set(why); });
  co_return co_await done;
}

}  // namespace rille::agent
