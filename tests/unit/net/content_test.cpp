#include "runtime/core/net/content.hpp"

#include <catch2/catch.hpp>

using namespace rille::net;

namespace {
std::string of(std::string (*validator)(const HttpResponse&), Headers headers) {
  HttpResponse head;
  head.headers = std::move(headers);
  return validator(head);
}
}  // namespace

TEST_CASE("a size is digits alone, and exact as a number of JSON") {
  CHECK(size_in("0") == 0);
  CHECK(size_in("9007199254740991") == 9007199254740991);
  for (const char* bad : {"", "-5", "+5", " 5", "5 ", "0x5", "9007199254740992", "99999999999999999999"})
    CHECK(size_in(bad) == -1);
}

TEST_CASE("a Content-Range tells where a part begins and how long the whole is") {
  const auto range = [](const char* text) {
    const ContentRange r = content_range(text);
    return std::pair(r.from, r.total);
  };
  CHECK(range("bytes 5-9/10") == std::pair<std::int64_t, std::int64_t>(5, 10));
  CHECK(range("bytes 5-9/*") == std::pair<std::int64_t, std::int64_t>(5, -1));
  CHECK(range("bytes */10") == std::pair<std::int64_t, std::int64_t>(-1, -1));
  for (const char* bad : {"", "5-9/10", "bytes 5", "bytes 5/9-10", "bytes -5--9/-10"})
    CHECK(range(bad) == std::pair<std::int64_t, std::int64_t>(-1, -1));
}

TEST_CASE("a validator is the ETag or the date, if it can be sent back") {
  CHECK(of(validator_of, {{"etag", "\"a\""}, {"last-modified", "date"}}) == "\"a\"");
  CHECK(of(validator_of, {{"etag", "W/\"a\""}, {"last-modified", "date"}}) == "W/\"a\"");
  CHECK(of(strong_validator_of, {{"etag", "W/\"a\""}, {"last-modified", "date"}}) == "date");
  for (auto* validator : {validator_of, strong_validator_of}) {
    CHECK(of(validator, {{"last-modified", "date"}}) == "date");
    CHECK(of(validator, {}).empty());
    CHECK(of(validator, {{"etag", "\"a\nb\""}}).empty());
    CHECK(of(validator, {{"etag", std::string(1025, 'x')}}).empty());
  }
}
