// Converts Values to and from JSON text with RapidJSON; value.hpp describes the escapes $num, $bytes and $map.
#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/value.hpp"

namespace rille {

namespace {

constexpr std::size_t depth_max = 128;

template <class Writer>
void write_text(Writer& out, const std::string& s) {
  if (is_utf8(s)) {
    out.String(s.data(), static_cast<rapidjson::SizeType>(s.size()));
    return;
  }
  out.StartObject();
  out.Key("$bytes");
  std::string coded = to_base64(s);
  out.String(coded.data(), static_cast<rapidjson::SizeType>(coded.size()));
  out.EndObject();
}

bool is_whole(double n) {  // whether a double holds n as an exact integer other than -0
  return std::fabs(n) < 9007199254740992.0 && n == static_cast<double>(static_cast<std::int64_t>(n)) &&
         !(n == 0 && std::signbit(n));
}

template <class Writer>
void write_number(Writer& out, double n) {
  if (std::isfinite(n)) {
    if (is_whole(n)) out.Int64(static_cast<std::int64_t>(n));
    else out.Double(n);
    return;
  }
  out.StartObject();
  out.Key("$num");
  out.String(std::isnan(n) ? "nan" : n > 0 ? "inf" : "-inf");
  out.EndObject();
}

bool key_before(const std::pair<Value, Value>& a, const std::pair<Value, Value>& b) {
  auto rank = [](const Value& v) { return v.as_bool() ? 0 : v.as_number() ? 1 : 2; };
  if (rank(a.first) != rank(b.first)) return rank(a.first) < rank(b.first);
  if (a.first.as_number()) return *a.first.as_number() < *b.first.as_number();
  return a.first.to_json() < b.first.to_json();
}

template <class Writer>
void write(Writer& out, const Value& v, bool plain = false) {
  if (v.is_null()) {
    out.Null();
  } else if (const bool* b = v.as_bool()) {
    out.Bool(*b);
  } else if (const double* n = v.as_number()) {
    write_number(out, *n);
  } else if (const std::string* s = v.as_string()) {
    write_text(out, *s);
  } else if (const Value::Array* a = v.as_array()) {
    out.StartArray();
    for (const Value& item : *a) write(out, item, plain);
    out.EndArray();
  } else if (const Value::Object* o = v.as_object()) {
    bool binary_key = std::any_of(o->begin(), o->end(), [](const auto& m) { return !is_utf8(m.first); });
    if (binary_key) {
      Value::Map map;
      for (const auto& [key, item] : *o) map.pairs.emplace_back(Value(key), item);
      write(out, Value(std::move(map)), plain);
      return;
    }
    out.StartObject();
    for (const auto& [key, item] : *o) {
      if (!plain && key.starts_with('$'))
        out.Key(("$" + key).c_str(), static_cast<rapidjson::SizeType>(key.size() + 1));
      else out.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
      write(out, item, plain);
    }
    out.EndObject();
  } else if (const Value::Map* m = v.as_map()) {
    Value::Pairs sorted = m->pairs;
    std::sort(sorted.begin(), sorted.end(), key_before);
    out.StartObject();
    out.Key("$map");
    out.StartArray();
    for (const auto& [key, item] : sorted) {
      out.StartArray();
      write(out, key, plain);
      write(out, item, plain);
      out.EndArray();
    }
    out.EndArray();
    out.EndObject();
  }
}

// Decodes an object that is one of the escapes of value.hpp; any other object is returned as it is.
Result<Value> unescape(Value::Object object) {
  if (object.size() == 1) {
    auto& [key, inner] = *object.begin();
    if (key == "$bytes" && inner.as_string()) {
      RILLE_TRY(std::string bytes, from_base64(*inner.as_string()));
      return Value(std::move(bytes));
    }
    if (key == "$num" && inner.as_string()) {
      const std::string& name = *inner.as_string();
      if (name == "nan") return Value(std::numeric_limits<double>::quiet_NaN());
      if (name == "inf") return Value(std::numeric_limits<double>::infinity());
      if (name == "-inf") return Value(-std::numeric_limits<double>::infinity());
    }
    if (key == "$map" && inner.as_array()) {
      Value::Map map;
      for (const Value& pair : *inner.as_array()) {
        const Value::Array* p = pair.as_array();
        if (!p || p->size() != 2)
          return make_error(ErrorKind::invalid,
                            "an entry of a $map is not a list of a key and a value: write [key, value]");
        map.pairs.emplace_back((*p)[0], (*p)[1]);
      }
      return Value(std::move(map));
    }
  }
  Value::Object plain;
  for (auto& [key, inner] : object) {
    bool doubled = key.size() > 1 && key[0] == '$' && key[1] == '$';
    plain.insert_or_assign(doubled ? key.substr(1) : key, std::move(inner));
  }
  return Value(std::move(plain));
}

// For a JSON number outside the range of double: true means too near 0 (read as 0), false means too large (an error).
bool is_tiny(std::string_view text) {
  const auto e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, e);
  const auto first = digits.find_first_of("123456789");
  if (first == digits.npos) return true;
  const auto point = std::min(digits.find('.'), e);
  const auto before_point = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  std::int64_t exponent = 0;
  std::string_view rest = text.substr(std::min(e + 1, text.size()));
  if (rest.starts_with('+')) rest.remove_prefix(1);
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), exponent);
  if (read.ec == std::errc::result_out_of_range) return rest.starts_with('-');
  constexpr std::int64_t far = 1'000'000'000'000;
  return before_point + std::clamp(exponent, -far, far) < 0;
}

// Parses numbers with from_chars: RapidJSON 1.1's own conversion writes outside its buffer (RapidJSON issue 1251).
// RapidJSON only finds where each number ends.
std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc::result_out_of_range) return number;
  if (!is_tiny(text)) return std::nullopt;
  return text.starts_with('-') ? -0.0 : 0.0;
}

struct Builder : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Builder> {
  struct Frame {
    bool object;
    Value::Array array;
    Value::Object members;
    std::string key;
  };
  std::vector<Frame> stack;
  Value root;
  std::string failure;
  bool plain = false;  // true: a key that begins with '$' is kept as written, not decoded as an escape

  bool put(Value v) {
    if (stack.empty()) {
      root = std::move(v);
      return true;
    }
    Frame& top = stack.back();
    if (top.object) top.members.insert_or_assign(std::move(top.key), std::move(v));
    else top.array.push_back(std::move(v));
    return true;
  }
  bool open(bool object) {
    if (stack.size() >= depth_max) {
      failure = "nested deeper than 128 levels";
      return false;
    }
    stack.push_back(Frame{object, {}, {}, {}});
    return true;
  }
  bool Null() { return put(Value()); }
  bool Bool(bool b) { return put(b); }
  bool RawNumber(const char* s, rapidjson::SizeType n, bool) {
    const std::optional<double> number = number_of(std::string_view(s, n));
    if (!number) failure = "Number too big to be stored in double.";
    return number && put(*number);
  }
  bool String(const char* s, rapidjson::SizeType n, bool) { return put(std::string(s, n)); }
  bool Key(const char* s, rapidjson::SizeType n, bool) {
    stack.back().key.assign(s, n);
    return true;
  }
  bool StartObject() { return open(true); }
  bool StartArray() { return open(false); }
  bool EndArray(rapidjson::SizeType) {
    Value v(std::move(stack.back().array));
    stack.pop_back();
    return put(std::move(v));
  }
  bool EndObject(rapidjson::SizeType) {
    Value::Object members = std::move(stack.back().members);
    Result<Value> v = plain ? Result<Value>(std::move(members)) : unescape(std::move(members));
    if (!v) {
      failure = v.error().message;
      return false;
    }
    stack.pop_back();
    return put(std::move(v).value());
  }
};

Result<Value> read(std::string_view text, bool plain) {
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  Builder builder;
  builder.plain = plain;
  constexpr unsigned flags =
      rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  if (!reader.Parse<flags>(stream, builder)) {
    std::string why =
        builder.failure.empty() ? rapidjson::GetParseError_En(reader.GetParseErrorCode()) : builder.failure;
    return make_error(ErrorKind::invalid, fmt::format("not valid JSON at byte {}: {}", reader.GetErrorOffset(), why));
  }
  return std::move(builder.root);
}

}  // namespace

namespace {

struct CountedOutput {
  using Ch = char;
  void Put(char) { ++bytes; }
  void Flush() {}
  std::size_t bytes = 0;
};
struct TextOutput {
  using Ch = char;
  void Put(char c) { text.push_back(c); }
  void Flush() {}
  std::string text;
};

}  // namespace

std::optional<std::string> Value::to_json_within(std::size_t bytes_max) const {
  CountedOutput counted;
  rapidjson::Writer<CountedOutput> count(counted);
  write(count, *this);
  if (counted.bytes > bytes_max) return {};
  TextOutput output;
  output.text.reserve(counted.bytes);  // exactly; growing the text would take more
  rapidjson::Writer<TextOutput> out(output);
  write(out, *this);
  return std::move(output.text);
}

std::string Value::to_json() const {
  if (is_null()) return "null";
  if (const bool* b = as_bool()) return *b ? "true" : "false";
  if (const double* n = as_number(); n && is_whole(*n)) {
    char digits[24];
    return {digits, std::to_chars(digits, std::end(digits), static_cast<std::int64_t>(*n)).ptr};
  }
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> out(buffer);
  write(out, *this);
  return {buffer.GetString(), buffer.GetSize()};
}

std::string Value::to_json_pretty() const {
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> out(buffer);
  out.SetIndent(' ', 2);
  write(out, *this);
  return {buffer.GetString(), buffer.GetSize()};
}

Result<Value> Value::from_json(std::string_view text) { return read(text, false); }
Result<Value> plain_json(std::string_view text) { return read(text, true); }

std::string to_plain_json(const Value& v) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> out(buffer);
  write(out, v, true);
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace rille
