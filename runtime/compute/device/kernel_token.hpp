// The words of a C++ text, with their places. Comments and blanks are left out; strings, also raw ones, are one word.
// Used by kernel_source.cpp, and by NVRTC's stand-in of the tests.
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

// invalid: a comment or a string that does not end.
Result<std::vector<Token>> tokens_of(std::string_view text);

}  // namespace rille::device
