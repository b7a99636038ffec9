#include "runtime/core/base/id.hpp"

// OpenSSL's deprecated low-level SHA-256 functions avoid the start-up of OpenSSL 3 providers (4 million instructions,
// once) and the algorithm lookup per digest (2000 instructions).
#define OPENSSL_SUPPRESS_DEPRECATED
#include <fmt/format.h>
#include <openssl/sha.h>
#include <sys/random.h>
#include <time.h>

#include <charconv>
#include <cstdlib>

namespace rille {

namespace {
SHA256_CTX* ctx(std::array<std::uint8_t, 112>& state) { return reinterpret_cast<SHA256_CTX*>(state.data()); }

void fill_random(void* out, std::size_t n) {
  auto* bytes = static_cast<std::uint8_t*>(out);
  while (n > 0) {
    ssize_t got = getrandom(bytes, n, 0);
    if (got > 0) bytes += got, n -= static_cast<std::size_t>(got);
  }
}

Digest digest_of(std::initializer_list<std::string_view> parts) {
  Sha256 hash;
  for (std::string_view part : parts) {
    char length[24];
    char* const end = std::to_chars(length, length + sizeof length - 1, part.size()).ptr;
    *end = ':';
    hash.update({length, static_cast<std::size_t>(end + 1 - length)});
    hash.update(part);
  }
  return hash.finish();
}
}  // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // OpenSSL's new interface allocates for each hash
static_assert(sizeof(SHA256_CTX) <= 112);
Sha256::Sha256() { SHA256_Init(ctx(state_)); }
void Sha256::update(std::string_view bytes) { SHA256_Update(ctx(state_), bytes.data(), bytes.size()); }
Digest Sha256::finish() {
  Digest out{};
  SHA256_Final(out.data(), ctx(state_));
  return out;
}
#pragma GCC diagnostic pop

Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string to_hex(const Digest& digest) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out(2 * digest.size(), '0');
  char* to = out.data();
  for (std::uint8_t byte : digest) {
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 15];
  }
  return out;
}

std::string sha256_hex(std::string_view bytes) { return to_hex(sha256(bytes)); }

bool is_sha256_hex(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string derive_uuid(std::initializer_list<std::string_view> parts) {
  Digest d = digest_of(parts);
  d[6] = static_cast<std::uint8_t>((d[6] & 0x0f) | 0x80);  // version 8, RFC 9562
  d[8] = static_cast<std::uint8_t>((d[8] & 0x3f) | 0x80);  // variant 10
  std::string out = to_hex(d).substr(0, 32);
  for (const std::size_t at : {20, 16, 12, 8}) out.insert(at, 1, '-');
  return out;
}

std::string derive_hex(std::initializer_list<std::string_view> parts, std::size_t chars) {
  return to_hex(digest_of(parts)).substr(0, chars);
}

std::string new_run_id(std::int64_t wall_us) {
  static constexpr char letters[] = "bcdfghjkmnpqrstvwxyz";
  std::uint8_t bytes[6];
  fill_random(bytes, sizeof bytes);
  std::string tail;
  for (std::uint8_t b : bytes) tail += letters[b % (sizeof letters - 1)];
  time_t seconds = wall_us / 1'000'000;
  tm t{};
  gmtime_r(&seconds, &t);
  return fmt::format("{:04}{:02}{:02}-{:02}{:02}{:02}-{}", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour,
                     t.tm_min, t.tm_sec, tail);
}

std::string random_hex(std::size_t n) {
  std::string bytes(n, '\0');
  fill_random(bytes.data(), n);
  std::string out;
  for (unsigned char b : bytes) out += fmt::format("{:02x}", b);
  return out;
}

}  // namespace rille
