// Computes size, XXH3-128 and optionally SHA-256 of bytes in one pass. XXH3 detects damaged files at memory speed;
// SHA-256 is for files that other systems also check. Any thread; a Hasher belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::store {

struct Fingerprint {
  std::int64_t size_bytes = 0;
  std::string xxh3;    // 32 hexadecimal digits, as `xxhsum -H2` prints
  std::string sha256;  // 64 hexadecimal digits, or "" if not requested
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

class Hasher {
 public:
  explicit Hasher(bool with_sha256 = false);
  Hasher(Hasher&&) noexcept;
  ~Hasher();
  void update(std::string_view bytes);
  Fingerprint finish();  // call at most once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Fingerprint fingerprint(std::string_view bytes, bool with_sha256 = false);
// Hashes an open file from its current offset to the end. `path` is only for the error message.
Result<Fingerprint> fingerprint_fd(int fd, const std::string& path, bool with_sha256 = false);
Result<Fingerprint> fingerprint_file(const std::string& path, bool with_sha256 = false);

}  // namespace rille::store
