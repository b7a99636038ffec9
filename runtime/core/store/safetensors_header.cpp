// The parser of the safetensors header. It rejects duplicate keys, unknown members, fractions and negative numbers,
// then checks that the tensors' byte ranges fill the data.
#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <set>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/store/safetensors.hpp"

namespace rille::store {

namespace {

constexpr std::uint64_t header_bytes_max = 100'000'000;  // limit set by the safetensors format
constexpr std::size_t rank_max = 64;

// Accepts exactly {"__metadata__": {string: string}, name: {dtype, shape, data_offsets}...}.
class HeaderHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, HeaderHandler> {
 public:
  std::vector<TensorEntry> tensors;
  StringMap metadata;
  std::string fault;

  bool Default() { return fail("a value of the wrong type"); }
  // Parses numbers with from_chars: RapidJSON 1.1's own conversion writes outside its buffer (RapidJSON issue 1251).
  bool RawNumber(const char* s, rapidjson::SizeType size, bool) {
    std::uint64_t n = 0;
    const auto read = std::from_chars(s, s + size, n);
    if (read.ec == std::errc() && read.ptr == s + size) return number(n);
    return *s == '-' ? fail("a negative number") : Default();
  }

  bool String(const char* s, rapidjson::SizeType size, bool) {
    std::string_view value(s, size);
    if (at_ == At::metadata) return metadata.emplace(key_, value).second || fail("a duplicate key");
    if (at_ != At::member || key_ != "dtype") return Default();
    tensors.back().dtype = value;
    return dtype_bits(value) ? true : fail("the dtype '" + std::string(value) + "', which the format does not define");
  }

  bool Key(const char* s, rapidjson::SizeType size, bool) {
    key_.assign(s, size);
    std::set<std::string, std::less<>>& seen = at_ == At::top ? names_ : members_;
    if (at_ != At::metadata && !seen.insert(key_).second) return fail("a duplicate key");
    if (at_ == At::top) tensor_ = key_;
    return true;
  }

  bool StartObject() {
    if (at_ == At::start) return at_ = At::top, true;
    if (at_ != At::top) return Default();
    if (key_ == "__metadata__") return at_ = At::metadata, true;
    tensors.emplace_back().name = key_;
    members_.clear();
    return at_ = At::member, true;
  }

  bool EndObject(rapidjson::SizeType) {
    if (at_ == At::member && (members_.size() != 3 || !shape_seen_ || offsets_ != 2 || tensors.back().dtype.empty()))
      return fail("members other than dtype, shape and two data_offsets");
    shape_seen_ = false;
    offsets_ = 0;
    at_ = at_ == At::top ? At::end : At::top;
    return true;
  }

  bool StartArray() {
    if (at_ != At::member || (key_ != "shape" && key_ != "data_offsets")) return Default();
    at_ = key_ == "shape" ? At::shape : At::offsets;
    return true;
  }

  bool EndArray(rapidjson::SizeType) {
    if (at_ == At::shape) shape_seen_ = true;
    at_ = At::member;
    return true;
  }

  const std::string& tensor() const { return tensor_; }

 private:
  enum class At { start, top, metadata, member, shape, offsets, end };

  bool fail(std::string what) { return fault = std::move(what), false; }

  bool number(std::uint64_t n) {
    TensorEntry* tensor = tensors.empty() ? nullptr : &tensors.back();
    if (at_ == At::shape) {
      if (n > std::numeric_limits<std::int64_t>::max()) return fail("a dimension above 2^63");
      if (tensor->shape.size() == rank_max) return fail("more than 64 dimensions");
      tensor->shape.push_back(static_cast<std::int64_t>(n));
      return true;
    }
    if (at_ != At::offsets) return Default();
    if (offsets_ == 2) return fail("more than two data_offsets");
    (offsets_++ == 0 ? tensor->begin : tensor->end) = n;
    return true;
  }

  At at_ = At::start;
  std::string key_, tensor_;
  std::set<std::string, std::less<>> names_, members_;
  bool shape_seen_ = false;
  int offsets_ = 0;
};

Error fault_in(std::string_view shown, const std::string& fault) {
  return make_error(ErrorKind::integrity, fmt::format("'{}' is not a valid safetensors file: {}", shown, fault),
                    "the file is truncated, damaged or of another format; use another copy");
}

// The fault in the tensors' byte ranges; "" if none. The ranges must fill the data without gap or overlap, and each
// must be as long as its shape requires.
std::string layout_fault(const std::vector<TensorEntry>& tensors, std::uint64_t data_bytes) {
  std::uint64_t at = 0;
  for (const TensorEntry& t : tensors) {
    if (t.begin != at || t.end < t.begin)
      return fmt::format("tensor '{}' spans bytes {} to {}, but should begin at byte {}", t.name, t.begin, t.end, at);
    auto size = tensor_bytes(t.dtype, t.shape);
    if (!size) return fmt::format("tensor '{}': {}", t.name, size.error().message);
    if (*size != t.end - t.begin)
      return fmt::format("tensor '{}' has {} bytes where its shape needs {}", t.name, t.end - t.begin, *size);
    at = t.end;
  }
  if (at != data_bytes)
    return fmt::format("the file has {} bytes of data, but its header describes {}", data_bytes, at);
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors(std::string_view file, std::string_view shown) {
  std::uint64_t length = 0;
  if (file.size() < 8) return fault_in(shown, fmt::format("it has {} bytes, less than the length word", file.size()));
  std::memcpy(&length, file.data(), 8);
  if (length > header_bytes_max)
    return fault_in(shown, fmt::format("its header claims {} bytes, above the limit of {}", length, header_bytes_max));
  if (length > file.size() - 8)
    return fault_in(shown, fmt::format("its header claims {} bytes and the file has {}", length, file.size()));
  std::string_view json = file.substr(8, length);
  if (json.empty() || json.front() != '{') return fault_in(shown, "its header does not begin with '{'");
  if (!is_utf8(json)) return fault_in(shown, "its header is not UTF-8");

  HeaderHandler handler;
  rapidjson::MemoryStream stream(json.data(), json.size());
  rapidjson::Reader reader;
  // Use the iterative parser, so that hostile nesting cannot overflow the stack.
  rapidjson::ParseResult parsed =
      reader.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag>(stream, handler);
  if (!handler.fault.empty())
    return fault_in(shown, fmt::format("header entry '{}' has {}", handler.tensor(), handler.fault));
  if (!parsed)
    return fault_in(shown,
                    fmt::format("header byte {}: {}", parsed.Offset(), rapidjson::GetParseError_En(parsed.Code())));

  SafetensorsHeader out{std::move(handler.tensors), std::move(handler.metadata), 8 + length};
  std::sort(out.tensors.begin(), out.tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  if (std::string fault = layout_fault(out.tensors, file.size() - out.data_offset); !fault.empty())
    return fault_in(shown, fault);
  return out;
}

}  // namespace rille::store
