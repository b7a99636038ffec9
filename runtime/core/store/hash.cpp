#include "runtime/core/store/hash.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "runtime/core/store/file.hpp"

namespace rille::store {

namespace {
constexpr std::size_t hash_piece_bytes = 1 << 20;

std::string hex_of(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (unsigned char byte : canonical.digest) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}
}  // namespace

struct Hasher::State {
  XXH3_state_t* xxh3 = XXH3_createState();
  std::optional<Sha256> sha256;
  std::int64_t size_bytes = 0;
  ~State() { XXH3_freeState(xxh3); }
};

Hasher::Hasher(bool with_sha256) : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(state_->xxh3);
  if (with_sha256) state_->sha256.emplace();
}
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::update(std::string_view bytes) {
  state_->size_bytes += static_cast<std::int64_t>(bytes.size());
  // Hash small pieces, so that the second hash function finds each piece in the processor's cache.
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, hash_piece_bytes);
    XXH3_128bits_update(state_->xxh3, piece.data(), piece.size());
    if (state_->sha256) state_->sha256->update(piece);
    bytes.remove_prefix(piece.size());
  }
}

Fingerprint Hasher::finish() {
  return {state_->size_bytes, hex_of(XXH3_128bits_digest(state_->xxh3)),
          state_->sha256 ? to_hex(state_->sha256->finish()) : std::string()};
}

Fingerprint fingerprint(std::string_view bytes, bool with_sha256) {
  Hasher hasher(with_sha256);
  hasher.update(bytes);
  return hasher.finish();
}

// Calls read() instead of mapping the file: if the file shrinks, read() returns less, but a map would raise SIGBUS.
Result<Fingerprint> fingerprint_file(const std::string& path, bool with_sha256) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("cannot open", path, errno);
  return fingerprint_fd(fd.get(), path, with_sha256);
}

Result<Fingerprint> fingerprint_fd(int fd, const std::string& path, bool with_sha256) {
  Hasher hasher(with_sha256);
  std::vector<char> buffer(hash_piece_bytes);
  for (;;) {
    ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("cannot read", path, errno);
    if (got == 0) return hasher.finish();
    hasher.update({buffer.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace rille::store
