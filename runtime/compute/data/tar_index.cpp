// The images of a WebDataset shard. Reads headers and labels only. Formats: ustar, GNU (long names, sizes of 64 bits)
// and pax (path, size).
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "runtime/compute/data/image_index.hpp"
#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/text.hpp"

namespace rille::data {

namespace {

constexpr std::uint64_t block = 512;
constexpr std::uint64_t text_bytes_max = 1 << 20;  // of a long name, of pax records, of a label

struct Header {
  char bytes[block];
  std::string_view field(std::size_t at, std::size_t size) const { return {bytes + at, strnlen(bytes + at, size)}; }
  char kind() const { return bytes[156]; }
  bool empty() const {
    for (const char c : bytes)
      if (c) return false;
    return true;
  }
};

// A number field: octal text, or, with the first bit set, 64 bits in binary.
std::optional<std::uint64_t> number(const Header& header, std::size_t at, std::size_t size) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(header.bytes) + at;
  if (bytes[0] & 0x80) {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (n >> 55) return std::nullopt;
      n = n << 8 | (i ? bytes[i] : bytes[i] & 0x7f);
    }
    return n;
  }
  const std::string text = trimmed(header.field(at, size));
  std::uint64_t n = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n, 8);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

bool sum_is_right(const Header& header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block; ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header.bytes[i]);
  return number(header, 148, 8) == sum;
}

class TarReader {
 public:
  TarReader(ImageIndex& index, const ReadableFile& file, const Asked& asked)
      : index_(index), file_(file), asked_(asked) {}

  Result<> read_all() {
    while (at_ + block <= file_.size()) {
      asked_.looks();
      Header header;
      RILLE_CHECK(file_.read(at_, header.bytes, block));
      if (header.empty()) return end_sample();
      if (!sum_is_right(header)) return damaged("it has no header of a file there");
      const auto size = next_size_ ? next_size_ : number(header, 124, 12);
      const bool has_data = !std::strchr("123456", header.kind()) || header.kind() == 0;
      if (!size || (has_data && *size > file_.size() - at_ - block)) return damaged("its size is not within the file");
      RILLE_CHECK(read_entry(header, has_data ? *size : 0));
      at_ += block + (has_data ? (*size + block - 1) / block * block : 0);
    }
    if (at_ < file_.size()) return damaged("it ends within a header");
    return end_sample();
  }

 private:
  Error damaged(std::string_view why) const {
    return make_error(ErrorKind::integrity, fmt::format("'{}' is damaged at byte {}: {}", file_.path(), at_, why),
                      "fetch it again, or write it again with tar");
  }

  Result<std::string> text(std::uint64_t size) const {
    if (size > text_bytes_max) return damaged(fmt::format("a text of {} bytes, the limit is {}", size, text_bytes_max));
    std::string out(size, '\0');
    RILLE_CHECK(file_.read(at_ + block, out.data(), size));
    return out;
  }

  Result<> read_entry(const Header& header, std::uint64_t size) {
    switch (header.kind()) {
      case 'L': {  // GNU: the next file's name
        RILLE_TRY(next_name_, text(size));
        next_name_.resize(strnlen(next_name_.c_str(), next_name_.size()));
        return success();
      }
      case 'x': return read_pax(size);
      case 'S': return damaged("a sparse file, which Rille does not read");
      case '0':
      case '7':
      case '\0': {
        std::string name = std::move(next_name_);
        if (name.empty()) {
          const std::string_view prefix = std::memcmp(header.bytes + 257, "ustar", 6) ? "" : header.field(345, 155);
          name = fmt::format("{}{}{}", prefix, prefix.empty() ? "" : "/", header.field(0, 100));
        }
        next_name_.clear(), next_size_.reset();
        return read_file(name, size);
      }
      default: next_name_.clear(), next_size_.reset(); return success();
    }
  }

  // Records "LENGTH KEY=VALUE\n", where LENGTH counts the whole record.
  Result<> read_pax(std::uint64_t size) {
    RILLE_TRY(const std::string records, text(size));
    for (std::string_view rest = records; !rest.empty();) {
      std::size_t length = 0;
      const auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
      const auto digits = static_cast<std::size_t>(end - rest.data());
      if (failed != std::errc() || length > rest.size() || length < digits + 2 || rest[length - 1] != '\n')
        return damaged("its pax records are not valid");
      const std::string_view record = rest.substr(digits + 1, length - digits - 2);
      rest.remove_prefix(length);
      if (record.starts_with("path=")) next_name_ = record.substr(5);
      if (!record.starts_with("size=")) continue;
      std::uint64_t n = 0;
      const auto value = record.substr(5);
      if (std::from_chars(value.data(), value.data() + value.size(), n).ptr != value.data() + value.size())
        return damaged("its pax size is not a number");
      next_size_ = n;
    }
    return success();
  }

  // A sample's files follow each other: their names are equal up to the first dot behind the last slash.
  Result<> read_file(const std::string& name, std::uint64_t size) {
    const std::size_t slash = name.rfind('/');
    const std::size_t dot = name.find('.', slash == name.npos ? 0 : slash + 1);
    if (dot == name.npos || dot == (slash == name.npos ? 0 : slash + 1)) return success();
    if (name.compare(0, dot, key_) != 0 || key_.size() != dot) {
      RILLE_CHECK(end_sample());
      key_ = name.substr(0, dot);
    }
    const std::string kind = lower_case(name.substr(dot + 1));
    if (kind == "jpg" || kind == "jpeg" || kind == "png") {
      if (image_at_) return damaged(fmt::format("a second image of the sample '{}'", shown_name(key_)));
      image_at_ = at_ + block, image_bytes_ = size;
    } else if (kind == "cls") {
      RILLE_TRY(const std::string label, text(size));
      return set_label(trimmed(label));
    } else if (kind == "json" && !label_) {
      RILLE_TRY(const std::string json, text(size));
      const auto value = plain_json(json);
      if (!value) return damaged(fmt::format("'{}': {}", shown_name(name), value.error().message));
      const Value& label = (*value)[index_.labels().empty() ? "label" : std::string_view(index_.labels())];
      if (!label.is_null()) return set_label(label.to_json());
    }
    return success();
  }

  Result<> set_label(const std::string& text) {
    std::int64_t n = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (failed != std::errc() || end != text.data() + text.size())
      return damaged(
          fmt::format("the label of the sample '{}' is '{}', not a whole number", shown_name(key_), shown_name(text)));
    label_ = n;
    return success();
  }

  Result<> end_sample() {
    if (image_at_ && !label_)
      return make_error(ErrorKind::invalid,
                        fmt::format("'{}' has no label for the sample '{}'", file_.path(), shown_name(key_)),
                        "a label is a whole number in KEY.cls, or a field of KEY.json that `labels` names");
    if (image_at_) RILLE_CHECK(index_.add(image_at_, image_bytes_, *label_));
    image_at_ = 0;
    label_.reset();
    key_.clear();
    return success();
  }

  ImageIndex& index_;
  const ReadableFile& file_;
  const Asked& asked_;
  std::uint64_t at_ = 0;  // of the header
  std::string next_name_;
  std::optional<std::uint64_t> next_size_;
  std::string key_;
  std::uint64_t image_at_ = 0, image_bytes_ = 0;
  std::optional<std::int64_t> label_;
};

}  // namespace

Result<> index_tar(ImageIndex& index, const std::string& name, const Asked& asked) {
  RILLE_TRY(const ReadableFile file, ReadableFile::open(index.folder() + "/" + name));
  RILLE_CHECK(index.add_file(name));
  return TarReader(index, file, asked).read_all();
}

}  // namespace rille::data
