#include "bindings/cli/visible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace rille::cli {

namespace {

constexpr std::string_view parameter_characters = "0123456789;";

// Whether SGR with these parameters hides text: number 8. After 38 and 48, which choose one of many colors, a number
// can be part of the color. Parameters that terminals may read differently count as hiding.
bool conceals(std::string_view parameters) {
  std::vector<int> numbers{0};
  std::size_t digits = 0;
  for (const char c : parameters) {
    if (c == ';') numbers.push_back(0), digits = 0;
    else if (++digits > 3) return true;
    else numbers.back() = 10 * numbers.back() + (c - '0');
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 8) return true;
    if (numbers[i] != 38 && numbers[i] != 48) continue;
    const int kind = i + 1 < numbers.size() ? numbers[i + 1] : 0;
    i += kind == 5 ? 2 : 4;
    if ((kind != 5 && kind != 2) || i >= numbers.size()) return true;
  }
  return false;
}

// Returns the length of the color sequence, or with `output` the erase sequence, at the start of `text`, which begins
// with ESC; 0: it is another sequence.
std::size_t harmless_sequence(std::string_view text, bool output) {
  if (text.size() < 3 || text[1] != '[') return 0;
  const std::size_t end = text.find_first_not_of(parameter_characters, 2);
  if (end == text.npos) return 0;
  const bool passes = text[end] == 'm' ? !conceals(text.substr(2, end - 2)) : text[end] == 'K' && output;
  return passes ? end + 1 : 0;
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

std::string shown_text(std::string_view text, bool output) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    std::size_t n = 1;
    if (c == 0x1b) n = harmless_sequence(text.substr(i), output);
    else if (c >= 0x80) n = character(text.substr(i));
    else if (c == '\r') n = output || text.substr(i + 1).starts_with('\n');
    else if (c == 0x7f || (c < 0x20 && c != '\n' && c != '\t')) n = 0;
    if (n) out.append(text, i, n);
    else if (c < 0x80) out += {'^', static_cast<char>(c ^ 0x40)};
    else out += fmt::format("\\x{:02x}", c);
    i += n ? n : 1;
  }
  return out;
}

}  // namespace

std::string visible(std::string_view text) {
  std::string out = shown_text(text, false);
  if (leaves_color(out, false)) out += "\x1b[0m";
  return out;
}

std::string visible_line(std::string_view text) {
  const std::string shown = shown_text(text, false);
  std::string out;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (shown[i] == '\x1b') i = shown.find('m', i);  // only colors pass
    else if (shown[i] != '\r') out += shown[i] == '\n' || shown[i] == '\t' ? ' ' : shown[i];
  }
  return out;
}

std::string visible_output(std::string_view text) { return shown_text(text, true); }

bool leaves_color(std::string_view shown, bool before) {
  for (std::size_t at = shown.rfind('\x1b'); at != shown.npos; at = at ? shown.rfind('\x1b', at - 1) : shown.npos) {
    const std::size_t end = std::min(shown.find_first_not_of(parameter_characters, at + 2), shown.size() - 1);
    const std::string_view parameters = shown.substr(at + 2, end - at - 2);
    if (shown[end] == 'm') return !parameters.empty() && parameters != "0";
  }
  return before;
}

}  // namespace rille::cli
