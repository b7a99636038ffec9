// The safetensors writer and SafetensorsFile. The header's parser is in safetensors_header.cpp.
#include "runtime/core/store/safetensors.hpp"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <set>

#include "runtime/core/base/base64.hpp"

namespace rille::store {

static_assert(std::endian::native == std::endian::little, "the format is little-endian; so is every host we build for");

namespace {

struct DtypeRow {
  std::string_view name;
  int bits;
};
// Sorted as the safetensors format sorts dtypes, by alignment; a file lists its tensors from the last dtype to the
// first.
constexpr std::array<DtypeRow, 22> dtypes{{
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
}};

std::size_t dtype_rank(std::string_view dtype) {
  auto row = std::find_if(dtypes.begin(), dtypes.end(), [&](const DtypeRow& r) { return r.name == dtype; });
  return static_cast<std::size_t>(row - dtypes.begin());
}

constexpr std::size_t data_alignment = 4096;
constexpr std::size_t piece_bytes = 4 << 20;

struct Planned {
  const TensorSource* source;
  std::uint64_t begin, end;
};

Error bad_tensor(std::string_view name, const std::string& why) {
  return make_error(ErrorKind::invalid, fmt::format("cannot write tensor '{}': {}", name, why));
}

Result<std::vector<Planned>> plan(const std::vector<TensorSource>& tensors) {
  std::vector<Planned> out;
  std::set<std::string_view> names;
  for (const TensorSource& t : tensors) {
    if (t.name == "__metadata__" || !is_utf8(t.name))
      return bad_tensor(t.name, "a name must be UTF-8 text other than __metadata__");
    if (!names.insert(t.name).second) return bad_tensor(t.name, "the name occurs twice: give each tensor its own name");
    out.push_back({&t, 0, 0});
  }
  std::sort(out.begin(), out.end(), [](const Planned& a, const Planned& b) {
    std::size_t rank_a = dtype_rank(a.source->dtype), rank_b = dtype_rank(b.source->dtype);
    return rank_a != rank_b ? rank_a > rank_b : a.source->name < b.source->name;
  });
  std::uint64_t at = 0;
  for (Planned& p : out) {
    auto size = tensor_bytes(p.source->dtype, p.source->shape);
    if (!size) return bad_tensor(p.source->name, size.error().message);
    if (*size && !p.source->data && !p.source->read)
      return bad_tensor(p.source->name, "no data were given for this tensor");
    p.begin = at;
    if (__builtin_add_overflow(at, *size, &at))
      return bad_tensor(p.source->name, "the file would exceed 2^64 bytes: write fewer tensors into it");
    p.end = at;
  }
  return out;
}

template <class Out>
void text(Out& out, const std::string& s) {
  out.String(s.data(), static_cast<rapidjson::SizeType>(s.size()));
}

// The first bytes of the file: the length of the header in 8 bytes, then the JSON header padded with spaces.
std::string header_of(const std::vector<Planned>& tensors, const StringMap& metadata) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> out(buffer);
  out.StartObject();
  if (!metadata.empty()) {
    out.Key("__metadata__");
    out.StartObject();
    for (const auto& [key, value] : metadata) text(out, key), text(out, value);
    out.EndObject();
  }
  for (const Planned& p : tensors) {
    text(out, p.source->name);
    out.StartObject();
    out.Key("dtype");
    text(out, p.source->dtype);
    out.Key("shape");
    out.StartArray();
    for (std::int64_t n : p.source->shape) out.Int64(n);
    out.EndArray();
    out.Key("data_offsets");
    out.StartArray();
    out.Uint64(p.begin), out.Uint64(p.end);
    out.EndArray();
    out.EndObject();
  }
  out.EndObject();
  std::size_t used = 8 + buffer.GetSize();
  std::uint64_t length = (used + data_alignment - 1) / data_alignment * data_alignment - 8;
  std::string header(8, '\0');
  std::memcpy(header.data(), &length, 8);
  header.append(buffer.GetString(), buffer.GetSize());
  header.resize(8 + length, ' ');
  return header;
}

Result<> write_tensor(const Planned& p, FileWriter& file, Hasher& hasher, std::string& buffer) {
  std::uint64_t size = p.end - p.begin;
  for (std::uint64_t at = 0; at < size;) {
    std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, size - at));
    std::string_view piece;
    if (p.source->data) {
      piece = {static_cast<const char*>(p.source->data) + at, n};
    } else {
      buffer.resize(n);
      RILLE_CHECK(p.source->read(at, buffer.data(), n));
      piece = buffer;
    }
    hasher.update(piece);
    RILLE_CHECK(file.write(piece));
    at += n;
  }
  return success();
}

}  // namespace

int dtype_bits(std::string_view dtype) {
  std::size_t row = dtype_rank(dtype);
  return row < dtypes.size() ? dtypes[row].bits : 0;
}

Result<std::uint64_t> tensor_bytes(std::string_view dtype, const std::vector<std::int64_t>& shape) {
  auto bits = static_cast<std::uint64_t>(dtype_bits(dtype));
  if (!bits)
    return make_error(ErrorKind::invalid, fmt::format("there is no dtype '{}'", dtype),
                      "use a dtype of the safetensors format, such as F32, BF16 or I64");
  bool overflow = false;
  for (std::int64_t n : shape) {
    if (n < 0)
      return make_error(ErrorKind::invalid, fmt::format("the dimension {} is negative", n),
                        "the sizes in a shape are 0 or more");
    overflow |= __builtin_mul_overflow(bits, static_cast<std::uint64_t>(n), &bits);
  }
  if (overflow)
    return make_error(ErrorKind::invalid, "the shape has more than 2^64 bits", "use smaller sizes in the shape");
  if (bits % 8)
    return make_error(ErrorKind::invalid,
                      fmt::format("a tensor of dtype {} has {} bits, which are not whole bytes", dtype, bits),
                      "give it an even number of elements, or a larger dtype");
  return bits / 8;
}

Result<Fingerprint> write_safetensors(const std::string& path, const std::vector<TensorSource>& tensors,
                                      const StringMap& metadata, bool with_sha256) {
  RILLE_TRY(std::vector<Planned> planned, plan(tensors));
  for (const auto& [key, value] : metadata)
    if (!is_utf8(key) || !is_utf8(value))
      return make_error(ErrorKind::invalid, fmt::format("metadata '{}' is not UTF-8", key),
                        "give the key and the value of metadata as UTF-8 text");
  std::string header = header_of(planned, metadata);
  std::uint64_t size = header.size() + (planned.empty() ? 0 : planned.back().end);
  RILLE_TRY(FileWriter file, FileWriter::create(path, static_cast<std::int64_t>(size)));
  Hasher hasher(with_sha256);
  hasher.update(header);
  RILLE_CHECK(file.write(header));
  std::string buffer;
  for (const Planned& p : planned) RILLE_CHECK(write_tensor(p, file, hasher, buffer));
  RILLE_CHECK(file.commit());
  return hasher.finish();
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path,
                                              const std::function<Result<>(std::int64_t bytes)>& room) {
  constexpr std::uint64_t bytes_of_byte = 8;
  SafetensorsFile file;
  RILLE_TRY(file.map_, MappedFile::open(path));
  std::uint64_t length = 0;
  if (file.map_.size() >= sizeof length) std::memcpy(&length, file.map_.data(), sizeof length);
  length = std::min<std::uint64_t>(length, file.map_.size());
  if (room) RILLE_CHECK(room(static_cast<std::int64_t>(length * bytes_of_byte)));
  RILLE_TRY(file.header_, parse_safetensors(file.map_.view(), path));
  return file;
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  for (const TensorEntry& entry : header_.tensors)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::string_view SafetensorsFile::bytes(const TensorEntry& entry) const {
  return map_.view().substr(header_.data_offset + entry.begin, entry.end - entry.begin);
}

}  // namespace rille::store
