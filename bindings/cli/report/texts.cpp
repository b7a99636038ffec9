#include "bindings/cli/report/texts.hpp"

#include <fmt/format.h>

#include <cmath>

#include "bindings/cli/visible.hpp"

namespace rille::cli {

namespace {

// The code point of the three-byte character at the start of `text`, if it changes the direction of writing; 0: none.
unsigned turns_direction(std::string_view text) {
  if (text.size() < 3 || text[0] != '\xe2') return 0;
  const unsigned code =
      0x2000U | ((static_cast<unsigned char>(text[1]) & 0x3fU) << 6) | (static_cast<unsigned char>(text[2]) & 0x3fU);
  const bool embeds = code >= 0x202a && code <= 0x202e, isolates = code >= 0x2066 && code <= 0x2069;
  return embeds || isolates || code == 0x200e || code == 0x200f ? code : 0;
}

// Cuts at most this many bytes, but no character in two.
std::string cut_text(std::string text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xc0) == 0x80) --bytes_max;
  text.resize(bytes_max);
  return text + " …";
}

}  // namespace

std::string plain_text(std::string_view text) {
  const std::string shown = visible(text);
  std::string out;
  out.reserve(shown.size());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (shown[i] == '\x1b') {
      i = shown.find('m', i);  // only colors are left
    } else if (const unsigned code = turns_direction(std::string_view(shown).substr(i))) {
      out += fmt::format("\\u{:04x}", code);
      i += 2;
    } else if (shown[i] != '\r') {
      out += shown[i];
    }
  }
  return out;
}

Value plain_value(const Value& value) {
  if (const std::string* text = value.as_string()) return plain_text(*text);
  if (const double* number = value.as_number(); number && !std::isfinite(*number)) return fmt::format("{}", *number);
  if (const Value::Array* list = value.as_array()) {
    Value::Array out;
    for (const Value& v : *list) out.push_back(plain_value(v));
    return out;
  }
  if (const Value::Object* members = value.as_object()) {
    Value::Object out;
    for (const auto& [name, v] : *members) out.insert_or_assign(plain_text(name), plain_value(v));
    return out;
  }
  if (value.as_map()) return plain_text(value.to_json());
  return value;
}

std::string plain_json(const Value& value, std::size_t bytes_max) {
  const std::optional<std::string> all = value.to_json_within(64 * bytes_max);
  if (!all) return fmt::format("(more than {} bytes)", 64 * bytes_max);
  return cut_text(plain_text(*all), bytes_max);
}

std::string in_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else if (c == '\'') out += "&#39;";
    else out += c;
  }
  return out;
}

std::string json_in_html(const Value& value) {
  const std::string json = value.to_json();
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<') out += "\\u003c";
    else if (c == '>') out += "\\u003e";
    else if (c == '&') out += "\\u0026";
    else out += c;
  }
  return out;
}

}  // namespace rille::cli
