// The tokens of a C++ text, with their positions. Comments and blanks are omitted; a string, raw or not, is one token.
// Used by kernel_source.cpp and by the tests' fake NVRTC.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::device {

struct Token {
  enum class Kind : unsigned char { word, number, text, sign } kind = Kind::sign;
  std::string_view text;
  std::size_t at = 0;  // offset in the source
  int line = 1;
  bool operator==(std::string_view other) const { return text == other; }
  bool is_word() const { return kind == Kind::word; }
};

// invalid: an unclosed comment or string.
Result<std::vector<Token>> tokens_of(std::string_view text);

}  // namespace rille::device
