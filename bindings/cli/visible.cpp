#include "bindings/cli/visible.hpp"

#include <fmt/format.h>

namespace rille::cli {

namespace {

// Returns the length of the color or erase sequence at the start of `text`, which begins with ESC; 0: it is another
// sequence.
std::size_t harmless_sequence(std::string_view text) {
  if (text.size() < 3 || text[1] != '[') return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != text.npos && (text[end] == 'm' || text[end] == 'K') ? end + 1 : 0;
}

// Returns the length of the UTF-8 character at the start of `text`; 0: invalid UTF-8 or a control character (C1).
std::size_t character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t n = lead >= 0xc2 && lead < 0xe0   ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (n == 0 || text.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  return lead == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0 ? 0 : n;
}

}  // namespace

std::string visible(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    std::size_t n = 1;
    if (c == 0x1b) n = harmless_sequence(text.substr(i));
    else if (c >= 0x80) n = character(text.substr(i));
    else if (c == 0x7f || (c < 0x20 && c != '\n' && c != '\t' && c != '\r')) n = 0;
    if (n) out.append(text, i, n);
    else if (c < 0x80) out += {'^', static_cast<char>(c ^ 0x40)};
    else out += fmt::format("\\x{:02x}", c);
    i += n ? n : 1;
  }
  return out;
}

}  // namespace rille::cli
