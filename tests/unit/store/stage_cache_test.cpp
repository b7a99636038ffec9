// The cache of fetched files: what it keeps, and what it removes to make room.
#include "runtime/core/store/stage_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "runtime/core/base/id.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using rille::store::StageCache;
namespace fs = std::filesystem;

namespace {
void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

struct Cached {
  TempDir temp;
  StageCache cache{temp.file("cache"), 1000, {}};

  // Adds a file of 100 bytes, last used `age_s` ago.
  std::string add(int number, int age_s = 0) {
    const std::string sha256 = sha256_hex(std::to_string(number));
    const std::string place = cache.place_for(sha256, 100).value();
    put(place, std::string(100, 'x'));
    const timespec times[2] = {{::time(nullptr) - age_s, 0}, {::time(nullptr) - age_s, 0}};
    REQUIRE(::utimensat(AT_FDCWD, place.c_str(), times, 0) == 0);
    return sha256;
  }
  std::int64_t held_bytes() const {
    std::int64_t sum = 0;
    for (const auto& file : fs::directory_iterator(temp.file("cache/sha256")))
      sum += static_cast<std::int64_t>(file.file_size());
    return sum;
  }
};
}  // namespace

TEST_CASE_METHOD(Cached, "the least recently used files go when the cache is full") {
  const std::string oldest = add(0, 1000), used = add(1, 900);
  for (int i = 2; i < 10; ++i) add(i, 500 - i);
  CHECK(held_bytes() == 1000);
  CHECK_FALSE(cache.file_of(used).empty());  // used now
  const std::string newest = add(10);
  CHECK(held_bytes() <= 1000);
  CHECK(cache.file_of(oldest).empty());
  CHECK_FALSE(cache.file_of(used).empty());
  CHECK_FALSE(cache.file_of(newest).empty());
  for (int i = 100; i < 200; ++i) {
    add(i);
    REQUIRE(held_bytes() <= 1000);
  }
}

TEST_CASE_METHOD(Cached, "another limit, a file that is too large, and what another process has added") {
  for (int i = 0; i < 5; ++i) add(i);
  CHECK(cache.place_for(sha256_hex("large"), 1001).value().empty());
  CHECK(cache.with_bytes_max(2000).place_for(sha256_hex("large"), 1001).value() != "");
  StageCache second(temp.file("cache"), 300, {});  // as another process sees it
  CHECK(second.place_for(sha256_hex("more"), 100).value() != "");
  CHECK(held_bytes() <= 200);
}

TEST_CASE_METHOD(Cached, "a version is known as long as its file is there") {
  const std::string sha256 = add(0);
  REQUIRE(cache.note("key", {"\"v1\"", sha256}).ok());
  CHECK(cache.find("key").value().version == "\"v1\"");
  REQUIRE(cache.note("key", {"\"v2\"", sha256}).ok());
  CHECK(cache.find("key").value().version == "\"v2\"");
  put(temp.file("cache/url/key.json"), "");  // as a power cut may leave it
  CHECK_FALSE(cache.find("key").has_value());
  REQUIRE(cache.note("key", {"\"v2\"", sha256}).ok());
  cache.drop(sha256);
  CHECK_FALSE(cache.find("key").has_value());
}
