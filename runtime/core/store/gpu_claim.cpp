#include "runtime/core/store/gpu_claim.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "runtime/core/base/value.hpp"

namespace rille::store {

namespace {

// tries every 10 ms to lock; another process may hold the lock briefly to read the claim
constexpr int tries_max = 100;

struct Claim {
  std::string owner;
  std::int64_t until_wall_us = 0;
};

// Reads the claim from the file; the caller holds the file's lock.
Claim read_claim(int fd) {
  char text[4096];
  const ssize_t n = pread(fd, text, sizeof text, 0);
  const Result<Value> v = Value::from_json(std::string(text, n > 0 ? static_cast<std::size_t>(n) : 0));
  if (!v) return {};
  return {v->text("owner"), v->integer("until_wall_us")};
}

Result<> write_claim(int fd, const Claim& claim, const std::string& path) {
  std::string text;
  if (!claim.owner.empty())
    text = Value().set("owner", claim.owner).set("until_wall_us", claim.until_wall_us).to_json() + "\n";
  if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0) return errno_error("write", path, errno);
  return write_all(fd, text, path);
}

bool others(const Claim& claim, const std::string& owner, std::int64_t now_wall_us) {
  return !claim.owner.empty() && claim.owner != owner && now_wall_us < claim.until_wall_us &&
         // a claim ending later than a new one would: the clock was set back, ignore it
         claim.until_wall_us - now_wall_us <= gpu_claim_us;
}

bool lock_now(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0; }

std::string default_folder() {
  if (const char* named = std::getenv("RILLE_GPU_LOCKS"); named && *named) return named;
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm/rille-gpus" : "/tmp/rille-gpus";
}

}  // namespace

GpuClaims::GpuClaims(std::string folder) : folder_(folder.empty() ? default_folder() : std::move(folder)) {}

// First opens without O_CREAT: with fs.protected_regular the kernel refuses O_CREAT on a file that another user owns.
Result<Fd> GpuClaims::open_file(const std::string& uuid) const {
  if (uuid.empty() || uuid.find('/') != uuid.npos || uuid[0] == '.')
    return make_error(ErrorKind::invalid, fmt::format("'{}' is not the uuid of a GPU", uuid),
                      "nvidia-smi -L lists the GPUs of this machine with their UUIDs");
  const std::string path = folder_ + "/" + uuid;
  if (mkdir(folder_.c_str(), 0777) == 0) chmod(folder_.c_str(), 01777);
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  Fd file(open(path.c_str(), flags));
  if (!file.valid() && errno == ENOENT) {
    file = Fd(open(path.c_str(), flags | O_CREAT | O_EXCL, 0666));
    if (file.valid()) fchmod(file.get(), 0666);
    else if (errno == EEXIST) file = Fd(open(path.c_str(), flags));
  }
  if (!file.valid()) return errno_error("open", path, errno);
  return file;
}

bool GpuClaims::is_free(const std::string& uuid, std::int64_t now_wall_us) const {
  const auto file = open_file(uuid);
  return file && lock_now(file->get()) && !others(read_claim(file->get()), "", now_wall_us);
}

Result<bool> GpuClaims::claim(const std::string& uuid, const std::string& owner, std::int64_t now_wall_us) const {
  RILLE_TRY(const Fd file, open_file(uuid));
  if (!lock_now(file.get()) || others(read_claim(file.get()), owner, now_wall_us)) return false;
  RILLE_CHECK(write_claim(file.get(), {owner, now_wall_us + gpu_claim_us}, folder_ + "/" + uuid));
  return true;
}

void GpuClaims::drop(const std::string& uuid, const std::string& owner) const {
  const auto file = open_file(uuid);
  if (!file || !lock_now(file->get()) || read_claim(file->get()).owner != owner) return;
  (void)write_claim(file->get(), {}, folder_ + "/" + uuid);
}

Result<Fd> GpuClaims::hold(const std::string& uuid, const std::string& owner, std::int64_t now_wall_us) const {
  RILLE_TRY(Fd file, open_file(uuid));
  bool locked = lock_now(file.get());
  for (int tries = 0; !locked && tries < tries_max; ++tries) {
    const timespec pause{0, 10'000'000};
    nanosleep(&pause, nullptr);
    locked = lock_now(file.get());
  }
  const Claim there = read_claim(file.get());
  if (!locked || others(there, owner, now_wall_us)) {
    Error e = make_error(ErrorKind::capacity,
                         fmt::format("GPU {} is now used by another rented instance of this machine{}", uuid,
                                     there.owner.empty() ? "" : ", " + there.owner),
                         "the instance's agent ended and another run took the GPU: rent another instance");
    e.resource = uuid;
    return e;
  }
  RILLE_CHECK(write_claim(file.get(), {owner, 0}, folder_ + "/" + uuid));
  return file;
}

}  // namespace rille::store
