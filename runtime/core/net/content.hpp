// What an answer's headers tell of the file that it gives. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/net/http.hpp"

namespace rille::net {

// Digits alone, below 2^53; -1: anything else.
std::int64_t size_in(std::string_view digits);

// Of Content-Range: "bytes 5-9/10" is {5, 10}. -1: a number that is not there.
struct ContentRange {
  std::int64_t from = -1, total = -1;
};
ContentRange content_range(std::string_view header);

// The ETag, else the date of the last change. "": neither, or one that could not be sent back in a header.
std::string validator_of(const HttpResponse& head);
// The same for If-Range, which takes no weak ETag (RFC 9110, 13.1.5).
std::string strong_validator_of(const HttpResponse& head);

}  // namespace rille::net
