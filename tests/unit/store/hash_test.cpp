#include "runtime/core/store/hash.hpp"

#include <catch2/catch.hpp>

#include "runtime/core/store/file.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::store;

TEST_CASE("known digests") {
  // `printf '' | xxhsum -H2` and `printf abc | xxhsum -H2`; SHA-256 from FIPS 180-4.
  CHECK(fingerprint("").xxh3 == "99aa06d3014798d86001c324468d497f");
  Fingerprint abc = fingerprint("abc", true);
  CHECK(abc.xxh3 == "06b05ab6733a618578af5f94892f3950");
  CHECK(abc.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(abc.size_bytes == 3);
  CHECK(fingerprint("abc").sha256.empty());
}

TEST_CASE("pieces, whole and file give the same fingerprint") {
  TempDir dir;
  std::string bytes(3'000'001, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  Hasher hasher(true);
  for (std::size_t at = 0, n = 1; at < bytes.size(); at += n, n = n * 3 + 1) hasher.update(bytes.substr(at, n));
  Fingerprint pieces = hasher.finish();
  REQUIRE(write_file_atomic(dir.file("a"), bytes).ok());
  CHECK(pieces == fingerprint(bytes, true));
  CHECK(pieces == fingerprint_file(dir.file("a"), true).value());
  bytes[1'500'000] ^= 1;
  CHECK(fingerprint(bytes).xxh3 != pieces.xxh3);
  CHECK(fingerprint_file(dir.file("none")).error().kind == ErrorKind::io);
}
