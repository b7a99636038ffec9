// OutputTail: the end of what a program has printed, which becomes a part of its result. A value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rille::agent {

inline constexpr std::size_t output_bytes_max = 60 << 10;  // so that most results stay in the journal's own rows

class OutputTail {
 public:
  void add(std::string_view bytes);
  bool cut() const { return cut_; }  // whether the beginning is missing
  // At most output_bytes_max bytes. If the beginning is missing, it begins with a line, or in a line that is longer
  // than that with a character.
  std::string text() const;

 private:
  std::string bytes_;
  bool cut_ = false;
};

}  // namespace rille::agent
