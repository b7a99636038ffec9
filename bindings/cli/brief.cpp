#include "bindings/cli/brief.hpp"

#include <fmt/format.h>

#include "runtime/core/base/units.hpp"

namespace rille::cli {

namespace {

constexpr std::size_t whole_bytes_max = 2000;               // a value up to this size is printed whole
constexpr std::size_t members_shown = 4, text_shown = 100;  // of a longer one
constexpr int levels_shown = 3;

std::string brief_of(const Value& v, int level);

template <class Members, class One>
std::string members(const Members& all, char open, char close, One&& one) {
  std::string out(1, open);
  std::size_t n = 0;
  for (const auto& member : all) {
    if (n == members_shown) break;
    out += (n++ ? "," : "") + one(member);
  }
  if (all.size() > n) out += fmt::format(",.. {} in all", all.size());
  return out + close;
}

std::string brief_of(const Value& v, int level) {
  if (const std::string* text = v.as_string(); text && text->size() > text_shown) {
    std::size_t end = text_shown;
    while (end > 0 && (static_cast<unsigned char>((*text)[end]) & 0xc0) == 0x80) --end;  // not within a character
    return Value(text->substr(0, end) + "..").to_json();
  }
  const Value::Array* list = v.as_array();
  const Value::Object* object = v.as_object();
  if (!list && !object) return v.as_map() ? "{..}" : v.to_json();
  if (level >= levels_shown) return list ? fmt::format("[{} in all]", list->size()) : "{..}";
  if (list) return members(*list, '[', ']', [&](const Value& item) { return brief_of(item, level + 1); });
  return members(*object, '{', '}', [&](const auto& member) {
    return Value(member.first).to_json() + ":" + brief_of(member.second, level + 1);
  });
}

}  // namespace

std::string brief(const Value& value, std::string_view whole) {
  std::string json = value.to_json();
  if (json.size() <= whole_bytes_max) return json;
  return fmt::format("{}\n         {} in all: {}", brief_of(value, 0),
                     format_size_bytes(static_cast<std::int64_t>(json.size())), whole);
}

}  // namespace rille::cli
