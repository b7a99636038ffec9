// Reads and writes names of types: the functions of kernel_source.hpp that work on a type's name.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/compute/device/kernel_source.hpp"
#include "runtime/compute/device/kernel_token.hpp"

namespace rille::device {

namespace {

using rille_abi::Element;

struct Row {
  const char* name;
  Element element;
  unsigned size;
  const char* vector;
};
constexpr Row rows[] = {
    {"void", rille_abi::nothing, 0, nullptr},
    {"bool", rille_abi::boolean, 1, nullptr},
    {"char", rille_abi::i8, 1, "char"},
    {"unsigned char", rille_abi::u8, 1, "uchar"},
    {"short", rille_abi::i16, 2, "short"},
    {"unsigned short", rille_abi::u16, 2, "ushort"},
    {"int", rille_abi::i32, 4, "int"},
    {"unsigned int", rille_abi::u32, 4, "uint"},
    {"long long", rille_abi::i64, 8, "longlong"},
    {"unsigned long long", rille_abi::u64_, 8, "ulonglong"},
    {"__half", rille_abi::f16, 2, "__half"},
    {"__nv_bfloat16", rille_abi::bf16, 2, "__nv_bfloat16"},
    {"float", rille_abi::f32, 4, "float"},
    {"double", rille_abi::f64, 8, "double"},
};
struct Alias {
  const char* name;
  const char* plain;
};
constexpr Alias aliases[] = {
    {"signed char", "char"},
    {"int8_t", "char"},
    {"uint8_t", "unsigned char"},
    {"int16_t", "short"},
    {"uint16_t", "unsigned short"},
    {"signed", "int"},
    {"signed int", "int"},
    {"int32_t", "int"},
    {"unsigned", "unsigned int"},
    {"uint", "unsigned int"},
    {"uint32_t", "unsigned int"},
    {"long", "long long"},
    {"long int", "long long"},
    {"int64_t", "long long"},
    {"ptrdiff_t", "long long"},
    {"unsigned long", "unsigned long long"},
    {"uint64_t", "unsigned long long"},
    {"size_t", "unsigned long long"},
    {"half", "__half"},
    {"nv_bfloat16", "__nv_bfloat16"},
};

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
}

// A type's name split into words and pointer stars; any other sign makes the type unknown (plain is false).
struct Parts {
  std::vector<std::string> words;
  int stars = 0;
  bool constant = false;  // whether the pointer's target, or the value, is const
  bool plain = true;
};

Parts parts_of(std::string_view type) {
  Parts p;
  int depth = 0;  // depth of template brackets, as in V<const float*>
  for (std::size_t i = 0; i < type.size();) {
    if (type[i] == '<') ++depth;
    if (type[i] == '>') --depth;
    if (depth > 0 || type[i] == '>') {
      p.plain = false;
      ++i;
      continue;
    }
    if (is_word_char(type[i])) {
      const auto from = i;
      while (i < type.size() && is_word_char(type[i])) ++i;
      const auto word = type.substr(from, i - from);
      if (word == "const") p.constant = p.constant || p.stars == 0;
      else if (word != "volatile" && word != "__restrict__" && word != "__restrict" && word != "struct")
        p.words.emplace_back(word.starts_with("std::") ? word.substr(5) : word);
    } else if (type[i] == '*') {
      ++p.stars;
      ++i;
    } else {
      p.plain = p.plain && (type[i] == ' ' || type[i] == '\t' || type[i] == '\n');
      ++i;
    }
  }
  return p;
}

const Row* row_named(std::string name) {
  for (const auto& a : aliases)
    if (name == a.name) name = a.plain;
  for (const auto& r : rows)
    if (name == r.name) return &r;
  return nullptr;
}

}  // namespace

rille_abi::Parameter parameter_of(std::string_view type) {
  const Parts parts = parts_of(type);
  rille_abi::Parameter p{parts.stars > 0, rille_abi::other, 1, parts.stars > 0 && parts.constant, 0};
  if (!parts.plain || parts.stars > 1 || parts.words.empty()) return p;
  std::string name;
  for (const auto& w : parts.words) name += (name.empty() ? "" : " ") + w;
  if (name == "__half2" || name == "half2") name = "__half2";
  if (name == "__nv_bfloat162" || name == "nv_bfloat162") name = "__nv_bfloat162";
  if (const Row* r = row_named(name)) {
    p.element = r->element;
    p.size = r->size;
    return p;
  }
  const char digit = name.empty() ? ' ' : name.back();  // empty for a text such as "std::"
  if (digit < '1' || digit > '4') return p;
  const std::string stem = name.substr(0, name.size() - 1);
  for (const auto& r : rows) {
    if (!r.vector || stem != r.vector) continue;
    p.element = r.element;
    p.lanes = unsigned(digit - '0');
    p.size = r.size * p.lanes;
  }
  return p;
}

std::vector<std::string> parameter_types_of(std::string_view demangled) {
  std::vector<std::string> types;
  const auto end = demangled.rfind(')');
  if (end == demangled.npos) return types;
  int depth = 0;
  std::size_t start = end;
  for (std::size_t i = end + 1; i-- > 0;) {
    if (demangled[i] == ')' || demangled[i] == '>') ++depth;
    if ((demangled[i] == '(' || demangled[i] == '<') && --depth == 0) {
      start = i + 1;
      break;
    }
  }
  std::string one;
  const auto take = [&] {
    const auto from = one.find_first_not_of(' ');
    if (from != one.npos) types.push_back(one.substr(from, one.find_last_not_of(' ') - from + 1));
    one.clear();
  };
  depth = 0;
  for (std::size_t i = start; i < end; ++i) {
    const char c = demangled[i];
    if (c == '(' || c == '<') ++depth;
    if (c == ')' || c == '>') --depth;
    if (c == ',' && depth == 0) take();
    else one += c;
  }
  take();
  if (types.size() == 1 && types[0] == "void") types.clear();
  return types;
}

std::string describe(const rille_abi::Parameter& p) {
  std::string name = "a type of its own";
  for (const auto& r : rows) {
    if (r.element != p.element) continue;
    name = p.lanes > 1 && r.vector ? fmt::format("{}{}", r.vector, p.lanes) : r.name;
  }
  if (!p.pointer) return name;
  return (p.constant ? "const " : "") + name + "*";
}

unsigned element_of_variable(std::string type) {
  type.resize(std::min(type.size(), type.find('[')));
  const auto p = parameter_of(type);
  return p.pointer ? unsigned(rille_abi::other) : p.element;
}

// Finds a declaration such as: const float __constant__ a[2], name[4] = {..};
unsigned constant_element(std::string_view text, const std::string& name) {
  const auto tokens = tokens_of(text);
  if (!tokens) return rille_abi::other;
  const auto& t = *tokens;
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (!(t[i] == "__constant__")) continue;
    std::size_t from = i;
    while (from > 0 && t[from - 1].is_word()) --from;
    std::string type, declared;  // the last word read is the first variable's name
    std::size_t n = from;
    for (; n < t.size() && (t[n].is_word() || t[n] == "::" || t[n] == "*"); ++n) {
      if (t[n] == "__constant__" || t[n] == "static" || t[n] == "extern" || t[n] == "__device__") continue;
      if (!declared.empty()) type += (type.empty() ? "" : " ") + declared;
      declared = t[n].text;
    }
    for (int depth = 0; n <= t.size(); ++n) {
      if (declared == name && depth == 0) return element_of_variable(type);
      if (n == t.size() || t[n] == ";") break;
      if (t[n] == "[" || t[n] == "{" || t[n] == "(") ++depth;
      else if (t[n] == "]" || t[n] == "}" || t[n] == ")") --depth;
      else if (depth == 0 && t[n] == "," && n + 1 < t.size()) declared = t[n + 1].text;
    }
  }
  return rille_abi::other;
}

}  // namespace rille::device
