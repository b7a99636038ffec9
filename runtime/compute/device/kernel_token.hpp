// Splits a C++ text into tokens with their positions. Comments and blanks are omitted; a string literal is one token,
// also a raw one. Used by kernel_source.cpp and by the tests' fake NVRTC.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::device {

struct Token {
  enum class Kind : unsigned char { word, number, text, sign } kind = Kind::sign;
  std::string_view text;
  std::size_t at = 0;  // offset of the token in the source, in bytes
  int line = 1;
  bool operator==(std::string_view other) const { return text == other; }
  bool is_word() const { return kind == Kind::word; }
};

// Error of kind invalid: a comment or string is not closed.
Result<std::vector<Token>> tokens_of(std::string_view text);

}  // namespace rille::device
