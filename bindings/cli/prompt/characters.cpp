#include "bindings/cli/prompt/characters.hpp"

#include <fmt/format.h>

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <cwchar>

#include "runtime/core/base/places.hpp"

namespace rille::cli {

namespace {

constexpr std::uint32_t joiner = 0x200d;

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

CodePoint code_point(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1, true};
  const std::size_t bytes = first >= 0xf5 ? 0 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (bytes == 0 || at + bytes > text.size()) return {first, 1, false};
  std::uint32_t value = first & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!continues(text[at + i])) return {first, 1, false};
    value = value << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3f);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  if (overlong || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {first, 1, false};
  return {value, bytes, true};
}

int width_of(const CodePoint& c) { return c.valid ? ::wcwidth(static_cast<wchar_t>(c.value)) : -1; }

}  // namespace

void use_character_widths() {
  if (std::setlocale(LC_CTYPE, "C.UTF-8")) return;
  const std::string bundle = bundle_folder();
  if (bundle.empty() || std::getenv("LOCPATH")) return;
  setenv("LOCPATH", (bundle + "/share/rille/locale").c_str(), 0);  // for this moment: no child process sees it
  std::setlocale(LC_CTYPE, "C.UTF-8");
  unsetenv("LOCPATH");
}

std::size_t next_character(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  CodePoint c = code_point(text, at);
  at += c.bytes;
  if (width_of(c) < 0) return at;
  while (at < text.size()) {
    const CodePoint more = code_point(text, at);
    if (c.value != joiner && width_of(more) != 0) break;
    if (more.value == 0 || width_of(more) < 0) break;
    c = more;
    at += more.bytes;
  }
  return at;
}

std::size_t previous_character(std::string_view text, std::size_t at) {
  // From the line's start, since only there it is certain where characters begin.
  std::size_t from = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  if (from != std::string_view::npos && from + 1 == at) return from;
  from = from == std::string_view::npos ? 0 : from + 1;
  while (from < at) {
    const std::size_t next = next_character(text, from);
    if (next >= at) break;
    from = next;
  }
  return from;
}

Shown shown_character(std::string_view character) {
  const CodePoint c = code_point(character, 0);
  const int width = width_of(c);
  if (c.valid && width >= 0 && character.size() > 0) {
    if (width > 0) return {std::string(character), static_cast<std::size_t>(width)};
    return {"\u25cc" + std::string(character), 1};  // a mark with nothing to stand on
  }
  if (c.valid && c.value < 0x20) return {fmt::format("^{}", static_cast<char>(c.value + 64)), 2};
  if (c.valid && c.value == 0x7f) return {"^?", 2};
  if (!c.valid) return {fmt::format("\\x{:02x}", c.value), 4};
  const std::string escaped = fmt::format("\\u{{{:x}}}", c.value);
  return {escaped, escaped.size()};
}

Shown shown_line(std::string_view text) {
  Shown out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = next_character(text, at);
    const std::string_view character = text.substr(at, next - at);
    const Shown one = character == "\n" || character == "\t" ? Shown{" ", 1} : shown_character(character);
    out.text += one.text;
    out.columns += one.columns;
    at = next;
  }
  return out;
}

}  // namespace rille::cli
