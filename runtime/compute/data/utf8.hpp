// Finds the characters of a text that may contain invalid UTF-8. Private to runtime/compute/data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/core/base/base64.hpp"

namespace rille::data {

// The length in bytes of the character at position `at`; 1 for an invalid byte.
inline std::size_t char_bytes(std::string_view text, std::size_t at) {
  const auto c = static_cast<std::uint8_t>(text[at]);
  if (c < 0x80) return 1;
  const std::size_t n = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC2 ? 2 : 1;
  return n > 1 && text.size() - at >= n && is_utf8(text.substr(at, n)) ? n : 1;
}

// The start of the character that ends before position `at`, which must not be 0.
inline std::size_t char_before(std::string_view text, std::size_t at) {
  for (std::size_t n = std::min<std::size_t>(4, at); n > 1; --n)
    if (char_bytes(text, at - n) == n) return at - n;
  return at - 1;
}

}  // namespace rille::data
