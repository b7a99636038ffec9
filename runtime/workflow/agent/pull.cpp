#include "runtime/workflow/agent/pull.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/core/base/id.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/store/hash.hpp"
#include "runtime/workflow/agent/paths.hpp"

namespace rille::agent {

namespace {

constexpr std::int64_t job_bytes = 64 << 20;  // per thread job: some tens of milliseconds
constexpr std::int64_t lock_wait_ms = 20, lock_wait_ms_max = 500;
constexpr int cache_share = 4;                      // the cache gets one part in four of the free bytes
constexpr std::int64_t copied_bytes_max = 1 << 20;  // a file of so many is copied into the cache before it is answered
constexpr std::int64_t buffer_bytes_max = 1 << 20;

bool clone(int from, int to) { return ::ioctl(to, FICLONE, from) == 0; }

// Reads a file through, for its digest, and with `to` copies it, by a clone if possible.
struct Reading {
  std::string from, to;
  store::Fd in, out;
  store::Hasher hasher{true};
  std::string buffer;
  bool at_end = false;

  Result<> step() {
    std::int64_t done = 0;
    while (done < job_bytes && !at_end) {
      const ssize_t got = ::read(in.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error("cannot read", from, errno);
      at_end = got == 0;
      const std::string_view piece(buffer.data(), static_cast<std::size_t>(got));
      hasher.update(piece);
      if (out.valid()) RILLE_CHECK(store::write_all(out.get(), piece, to));
      done += got;
    }
    return success();
  }
};

Result<std::shared_ptr<Reading>> begin_reading(const std::string& from, const std::string& to) {
  auto reading = std::make_shared<Reading>();
  reading->from = from, reading->to = to;
  reading->in = store::Fd(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st {};
  if (!reading->in.valid() || ::fstat(reading->in.get(), &st) != 0) return errno_error("cannot open", from, errno);
  reading->buffer.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(st.st_size, 1, buffer_bytes_max)));
  if (to.empty()) return reading;
  ::unlink(to.c_str());
  reading->out = store::Fd(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!reading->out.valid()) return errno_error("cannot create", to, errno);
  if (clone(reading->in.get(), reading->out.get())) reading->out = store::Fd();
  return reading;
}

Async<store::Fingerprint> read_through(Loop& loop, std::string from, std::string to, CancelToken token) {
  auto begin = [from, to]() -> Result<std::shared_ptr<Reading>> {
    RILLE_TRY(std::shared_ptr<Reading> reading, begin_reading(from, to));
    RILLE_CHECK(reading->step());
    return reading;
  };
  RILLE_CO_TRY(std::shared_ptr<Reading> reading, co_await thread_job(loop, std::move(begin)));
  while (!reading->at_end) {
    if (token.cancelled()) co_return token.reason();
    auto step = [reading] { return reading->step(); };
    RILLE_CO_CHECK(co_await thread_job(loop, std::move(step)));
  }
  co_return reading->hasher.finish();
}

std::string mtime_text(const struct stat& st) { return fmt::format("{}.{:09}", st.st_mtim.tv_sec, st.st_mtim.tv_nsec); }

bool copy_bytes(int from, int to, std::int64_t size_bytes) {
  while (size_bytes > 0) {
    const ssize_t done = ::copy_file_range(from, nullptr, to, nullptr, static_cast<std::size_t>(size_bytes), 0);
    if (done <= 0) return false;
    size_bytes -= done;
  }
  return true;
}

// A folder of this user alone, so that no other user chooses what a pull gets.
bool is_private_directory(const std::string& path) {
  struct stat st {};
  (void)::mkdir(path.c_str(), 0700);
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == ::geteuid() && (st.st_mode & 077) == 0;
}

std::string cache_directory_for(const std::string& directory) {
  const std::string beside = fmt::format("{}/.rille-cache-{}", store::parent_path(directory), ::geteuid());
  if (is_private_directory(beside)) return beside;
  const std::string inner = directory + "/pulls/cache";
  return store::make_directories(directory + "/pulls") && is_private_directory(inner) ? inner : std::string();
}

// Renames without syncing: what is lost in a power cut is fetched again.
void write_unsynced(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".tmp-" + random_hex(6);
  store::Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool written = fd.valid() && store::write_all(fd.get(), text, fresh).ok();
  if (!written || ::rename(fresh.c_str(), path.c_str()) != 0) ::unlink(fresh.c_str());
}

}  // namespace

// The file that a pull makes. Shared with thread jobs.
struct Puller::Target {
  Target(std::string p, std::string k, std::string note, store::StageCache c)
      : path(std::move(p)), key(std::move(k)), note_path(std::move(note)), source(sha256_hex(key)), cache(std::move(c)),
        part(std::make_shared<PullPart>(path, key)) {}

  std::string path, key, note_path;
  std::string source;  // the cache's name of the key
  store::StageCache cache;
  std::shared_ptr<PullPart> part;
  bool named = true;  // whether the cache says that these bytes are that version of the source

  // What the note says of the file, if the file has not changed since.
  std::optional<Pulled> noted() const {
    const auto text = store::read_file(note_path, 64 << 10);
    const auto note = text ? Value::from_json(*text) : Result<Value>(text.error());
    struct stat st {};
    if (!note || ::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return {};
    Pulled found;
    found.size_bytes = note->integer("size", -1), found.version = note->text("version");
    found.sha256 = note->text("sha256");
    const bool same = note->text("path") == path && note->text("key") == key && st.st_size == found.size_bytes &&
                      mtime_text(st) == note->text("mtime") && is_sha256_hex(found.sha256);
    return same ? std::optional(found) : std::nullopt;
  }
  void write_note(const Pulled& pulled) const {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return;
    Value note;
    note.set("path", path).set("key", key).set("version", pulled.version).set("size", pulled.size_bytes);
    note.set("mtime", mtime_text(st)).set("sha256", pulled.sha256);
    write_unsynced(note_path, note.to_json());
  }
  std::string cached(const Pulled& pulled) const { return cache.file_of(pulled.sha256); }
  bool note_in_cache(const Pulled& pulled) const {
    return !named || cache.note(source, {pulled.version, pulled.sha256}).ok();
  }
  // Puts a clone of the part, or the bytes of a small one, into the cache. False: it is neither, or there is no room.
  bool put_into_cache(const Pulled& pulled) const {
    if (!cache.file_of(pulled.sha256).empty()) return note_in_cache(pulled);
    const auto place = cache.place_for(pulled.sha256, pulled.size_bytes);
    if (!place || place->empty()) return false;
    const std::string fresh = *place + ".tmp-" + random_hex(6);
    const store::Fd in(::open(part->path().c_str(), O_RDONLY | O_CLOEXEC));
    const store::Fd out(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    bool there = in.valid() && out.valid() && clone(in.get(), out.get());
    if (!there && in.valid() && out.valid() && pulled.size_bytes <= copied_bytes_max)
      there = copy_bytes(in.get(), out.get(), pulled.size_bytes);
    if (there && ::rename(fresh.c_str(), place->c_str()) == 0) return note_in_cache(pulled);
    ::unlink(fresh.c_str());
    return false;
  }
};

// Held while a source is fetched: a lock on one byte, chosen by the key, of a file that all pulls share. A file for
// each key would be made and removed with each pull, which ext4 without a journal does slowly.
struct Puller::KeyLock {
  std::string path;
  off_t byte = 0;
  store::Fd fd;
  bool take() {
    if (!fd.valid()) fd = store::Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    struct flock wanted {};
    wanted.l_type = F_WRLCK, wanted.l_whence = SEEK_SET, wanted.l_start = byte, wanted.l_len = 1;
    return fd.valid() && ::fcntl(fd.get(), F_OFD_SETLK, &wanted) == 0;  // of this descriptor, not of the process
  }
};

Puller::Puller(Loop& loop, std::string directory, net::Retry retry, PeerLimits limits)
    : loop_(loop), work_(directory + "/work"), notes_(directory + "/pulls"),
      cache_directory_(cache_directory_for(directory)), retry_(retry), slots_(loop, gets_max), limits_(limits),
      cache_(cache_directory_, 0, {}), placing_(std::make_shared<PullPlacing>(loop)) {}

store::StageCache Puller::cache() const {
  struct statvfs fs {};
  std::int64_t free = 0;
  if (!cache_directory_.empty() && ::statvfs(cache_directory_.c_str(), &fs) == 0)
    free = static_cast<std::int64_t>(fs.f_bavail) * static_cast<std::int64_t>(fs.f_frsize);
  return cache_.with_bytes_max(free / cache_share);
}

net::HttpClient& Puller::http() {
  if (!http_) {
    net::HttpOptions options;
    options.connections_max = options.connections_per_host_max = gets_max;
    http_.emplace(loop_, std::move(options));
  }
  return *http_;
}

Result<Puller::TargetPtr> Puller::target_of(const PullOrder& order) const {
  RILLE_TRY(std::string path, inside(work_, order.request.path));
  struct stat st {};
  if (path == work_ || (::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)))
    return make_error(ErrorKind::invalid, fmt::format("cannot fetch to '{}': it is a directory", order.request.path),
                      "name the file to create, not only its directory");
  RILLE_CHECK(store::make_directories(store::parent_path(path)));
  RILLE_CHECK(store::make_directories(notes_));
  std::string note = fmt::format("{}/{}.json", notes_, sha256_hex(path).substr(0, 32));
  return std::make_shared<Target>(std::move(path), order.request.key, std::move(note), cache());
}

Async<std::shared_ptr<Puller::KeyLock>> Puller::lock(Self self, std::string key, CancelToken token) {
  const std::string folder = (self->cache_directory_.empty() ? self->notes_ : self->cache_directory_) + "/lock";
  RILLE_CO_CHECK(store::make_directories(folder));
  auto held = std::make_shared<KeyLock>();
  held->path = folder + "/sources";
  constexpr std::size_t number_digits = 15;  // hexadecimal: 60 bits
  held->byte = static_cast<off_t>(std::stoll(sha256_hex(key).substr(0, number_digits), nullptr, 16));
  for (std::int64_t wait_ms = lock_wait_ms; !held->take(); wait_ms = std::min(2 * wait_ms, lock_wait_ms_max))
    RILLE_CO_CHECK(co_await sleep_for(self->loop_, wait_ms, token));
  co_return held;
}

// False: not cached, or damaged and now removed.
Async<bool> Puller::copy_from_cache(Self self, TargetPtr target, std::string sha256, CancelToken token) {
  const std::string file = target->cache.file_of(sha256);
  if (file.empty()) co_return false;
  struct stat st {};
  if (::stat(file.c_str(), &st) == 0) RILLE_CO_CHECK(target->part->check_room(st.st_size));
  target->part->discard();  // a note that stayed beside the copy would speak of other bytes
  auto copied = co_await read_through(self->loop_, file, target->part->path(), token);
  if (copied && copied->sha256 == sha256) co_return true;
  target->part->discard();
  if (!copied && token.cancelled()) co_return std::move(copied).error();
  target->cache.drop(sha256);
  co_return false;
}

// What an earlier pull left is thrown away if the object has changed since, and the fetch begins once more.
Async<std::shared_ptr<PullFetch>> Puller::fetch(Self self, TargetPtr target, PullOrder order, std::string have,
                                                TransferProgress progress, CancelToken token) {
  const PullFetch::Site site{self->http(), self->slots_, self->retry_, self->shunned_, self->limits_};
  auto one = std::make_shared<PullFetch>(site, order, target->part, have, progress);
  auto fetched = co_await PullFetch::run(one, token);
  if (!fetched && one->outdated()) {
    order.machines.clear();
    one = std::make_shared<PullFetch>(site, order, target->part, have, progress);
    fetched = co_await PullFetch::run(one, token);
  }
  if (!fetched) co_return std::move(fetched).error();
  co_return one;
}

// Brings the object into the part file, or finds that the file is there already.
Async<Puller::Obtained> Puller::obtain(Self self, TargetPtr target, PullOrder order, TransferProgress progress,
                                       CancelToken token) {
  const PullRequest& wanted = order.request;
  const auto noted = target->noted();
  const auto cached = target->cache.find(target->source);
  const bool same = noted && (wanted.size_bytes < 0 || wanted.size_bytes == noted->size_bytes) &&
                    (wanted.sha256.empty() ? !wanted.version.empty() && noted->version == wanted.version
                                           : noted->sha256 == wanted.sha256);
  if (same) co_return Obtained{*noted, true};
  Obtained out;
  out.pulled.size_bytes = -1, out.pulled.version = wanted.version;
  std::string sha256 = wanted.sha256;
  if (sha256.empty() && cached && !wanted.version.empty() && cached->version == wanted.version) sha256 = cached->sha256;
  if (!sha256.empty()) {
    RILLE_CO_TRY(const bool copied, co_await copy_from_cache(self, target, sha256, token));
    if (copied) co_return out;
  }
  // Without an expected version the server says whether the copy here is still the newest.
  const bool open = wanted.version.empty() && wanted.sha256.empty();
  const std::string have = !open ? "" : noted ? noted->version : cached ? cached->version : "";
  RILLE_CO_TRY(std::shared_ptr<PullFetch> fetched, co_await fetch(self, target, order, have, progress, token));
  if (fetched->not_modified()) {
    if (noted) co_return Obtained{*noted, true};
    RILLE_CO_TRY(const bool copied, co_await copy_from_cache(self, target, cached->sha256, token));
    out.pulled.version = cached->version;
    if (copied) co_return out;
    RILLE_CO_TRY(fetched, co_await fetch(self, target, order, "", progress, token));
  }
  out.pulled.version = fetched->version();
  out.pulled.moved_bytes = fetched->moved_bytes();
  out.pulled.shared_bytes = fetched->shared_bytes();
  out.pulled.liars = fetched->liars();
  co_return out;
}

// Whether the part file is what was asked for, which completes `pulled`. It is discarded if not.
Async<> Puller::check(Self self, TargetPtr target, const PullOrder& order, Pulled& pulled, CancelToken token) {
  const PullRequest& wanted = order.request;
  RILLE_CO_TRY(const store::Fingerprint print, co_await read_through(self->loop_, target->part->path(), "", token));
  pulled.size_bytes = print.size_bytes, pulled.sha256 = print.sha256;
  const bool right = (wanted.sha256.empty() || print.sha256 == wanted.sha256) &&
                     (wanted.size_bytes < 0 || print.size_bytes == wanted.size_bytes);
  const bool disputed = order.share && order.share->has_taken() && order.share->disputed();
  if (right && !disputed) co_return success();
  target->part->discard();
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("'{}' has {} bytes and the SHA-256 {}, but {} bytes and '{}' are expected",
                  net::shown_address(order.url), print.size_bytes, print.sha256, wanted.size_bytes, wanted.sha256),
      "the source has changed or is damaged, or the expected digest is of another version");
}

// Brings the file to its place, and into the cache as far as that moves no bytes.
Async<Pulled> Puller::bring(Self self, TargetPtr target, PullOrder order, TransferProgress progress,
                            CancelToken token) {
  RILLE_CO_TRY(std::shared_ptr<KeyLock> lock, co_await Puller::lock(self, order.request.key, token));
  RILLE_CO_TRY(Obtained got, co_await obtain(self, target, order, progress, token));
  if (!order.request.version.empty()) got.pulled.version = order.request.version;
  if (got.in_place) co_return std::move(got.pulled);
  auto right = co_await check(self, target, order, got.pulled, token);
  const bool taken = order.share && order.share->has_taken();
  if (!right && taken && right.error().kind == ErrorKind::integrity) {
    order.machines.clear();
    const std::vector<int> liars = got.pulled.liars;
    RILLE_CO_TRY(got, co_await obtain(self, target, order, progress, token));
    if (!order.request.version.empty()) got.pulled.version = order.request.version;
    got.pulled.liars = liars;
    right = co_await check(self, target, order, got.pulled, token);
  }
  if (!right) co_return std::move(right).error();
  Pulled out = std::move(got.pulled);
  // Later pulls look for a version in the cache, also of other runs, which trust none of these machines.
  target->named = !order.request.sha256.empty() || !(order.share && order.share->has_taken());
  const auto cached = std::make_shared<bool>(false);
  PullPlacing::File file;
  file.part = target->part, file.size_bytes = out.size_bytes;
  file.before = [target, out, cached] { *cached = target->put_into_cache(out); };
  file.after = [target, out] { target->write_note(out); };
  RILLE_CO_CHECK(co_await PullPlacing::place(self->placing_, std::move(file)));
  if (*cached && order.share) order.share->whole_copy(target->cached(out));
  if (!*cached && !self->closing_.cancelled()) {
    ++self->filling_;
    self->loop_.spawn(fill_cache(self, std::move(target), out, order.share, std::move(lock)));
  }
  co_return out;
}

Async<Pulled> Puller::pull(Self self, PullOrder order, TransferProgress progress, CancelToken token) {
  const std::shared_ptr<Share> share = order.share;
  auto target = self->target_of(order);
  Result<Pulled> out = target ? Result<Pulled>(Pulled()) : Result<Pulled>(target.error());
  if (target) out = co_await bring(self, *target, std::move(order), progress, std::move(token));
  // An address that expired is signed again, and the pull goes on.
  if (share && !out && out.error().code != "address_expired") share->end();
  if (share && out) share->whole(out->size_bytes, (*target)->path);
  if (progress && out) progress(out->size_bytes, out->size_bytes);
  co_return out;
}

// The file may be edited meanwhile: only what has the digest still is kept. A cache that is full or broken only goes
// without the file.
Task<void> Puller::fill_cache(Self self, TargetPtr target, Pulled pulled, std::shared_ptr<Share> share,
                              std::shared_ptr<KeyLock> lock) {
  auto place_for = [target, pulled] { return target->cache.place_for(pulled.sha256, pulled.size_bytes); };
  const Result<std::string> place = co_await thread_job(self->loop_, std::move(place_for));
  if (place && !place->empty()) {
    const std::string fresh = *place + ".tmp-" + random_hex(6);
    const auto copied = co_await read_through(self->loop_, target->path, fresh, self->closing_.token());
    if (copied && copied->sha256 == pulled.sha256 && ::rename(fresh.c_str(), place->c_str()) == 0) {
      auto note = [target, pulled] { return target->note_in_cache(pulled); };
      (void)co_await thread_job(self->loop_, std::move(note));
      if (share) share->whole_copy(*place);
    } else {
      ::unlink(fresh.c_str());
    }
  }
  lock.reset();
  if (--self->filling_ == 0 && self->filled_) self->filled_->set(true);
}

Task<void> Puller::close(Self self) {
  self->closing_.cancel(make_error(ErrorKind::cancelled, "the agent ends"));
  if (self->filling_ == 0) co_return;
  self->filled_.emplace(self->loop_);
  co_await *self->filled_;
}

}  // namespace rille::agent
