// Characters as a terminal shows them: a UTF-8 code point with what combines with it. Text may be any bytes; a byte
// that is no UTF-8, and a control character, is shown as text ("\xff", "^A"). Widths are those of the C library's
// locale.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rille::cli {

// Sets the locale that widths need. A bundle of Rille has its own, for systems without one. Once per process.
void use_character_widths();

// The offset behind the character at `at`, or before it. At an end of the text: that end.
std::size_t next_character(std::string_view text, std::size_t at);
std::size_t previous_character(std::string_view text, std::size_t at);

// The characters of `text` from `begin` to `end` as a terminal may show them, and their columns.
struct Shown {
  std::string text;
  std::size_t columns = 0;
};
// One character, as next_character() cuts them, that is neither newline nor tab.
Shown shown_character(std::string_view character);
// A line of text: newlines and tabs as spaces.
Shown shown_line(std::string_view text);

}  // namespace rille::cli
