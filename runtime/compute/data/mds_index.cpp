// The images of MosaicML's MDS. index.json describes the shards and their columns. A shard has the number of its
// samples, their places (one more than samples; u32, little-endian), then the samples: the sizes (u32) of the columns
// without a fixed size, then the columns.
// https://docs.mosaicml.com/projects/streaming/en/latest/preparing_datasets/dataset_format.html
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "runtime/compute/data/image_index.hpp"
#include "runtime/core/base/plain_json.hpp"

namespace rille::data {

namespace {

constexpr std::int64_t index_bytes_max = 64 << 20;
constexpr std::uint64_t column_max = 1000;

Error bad_mds(const std::string& path, std::string_view why) {
  return make_error(ErrorKind::integrity, fmt::format("'{}' is not a valid MDS data set: {}", path, why),
                    "fetch it again, or write it again with MosaicML's MDSWriter");
}

struct Column {
  std::string name, encoding;
  std::uint64_t bytes = 0;  // 0: of any size
  bool is_image() const { return encoding == "jpeg" || encoding == "png" || encoding == "bytes"; }
  // Of "int", "int8", .. "uint64": the number of bytes; else 0.
  std::uint64_t number_bytes() const {
    if (encoding == "int") return 8;
    for (const char* kind : {"int", "uint"})
      for (const std::uint64_t n : {1, 2, 4, 8})
        if (encoding == fmt::format("{}{}", kind, 8 * n)) return n;
    return 0;
  }
};

struct Columns {
  std::vector<Column> all;
  std::size_t image = 0, label = 0;
};

class MdsReader {
 public:
  MdsReader(ImageIndex& index, const Asked& asked) : index_(index), asked_(asked) {}

  Result<> read_all() {
    RILLE_TRY(const ReadableFile file, ReadableFile::open(path_));
    if (file.size() > std::uint64_t{index_bytes_max})
      return bad_mds(path_, fmt::format("it has {} bytes, the limit is {}", file.size(), index_bytes_max));
    constexpr std::size_t value_factor = 16;  // a parsed value's bytes for each byte of text
    RILLE_CHECK(asked_.needs(file.size() * value_factor));
    std::string text(file.size(), '\0');
    RILLE_CHECK(file.read(0, text.data(), text.size()));
    const auto value = plain_json(text);
    if (!value) return bad_mds(path_, value.error().message);
    const Value::Array* shards = (*value)["shards"].as_array();
    if (!shards) return bad_mds(path_, "it has no list `shards`");
    for (const Value& shard : *shards) RILLE_CHECK(read_shard(shard));
    return success();
  }

 private:
  Result<Columns> columns_of(const Value& shard) const {
    Columns out;
    const auto *names = shard["column_names"].as_array(), *encodings = shard["column_encodings"].as_array(),
               *sizes = shard["column_sizes"].as_array();
    if (!names || !encodings || !sizes || names->size() != encodings->size() || names->size() != sizes->size() ||
        names->size() > column_max)
      return bad_mds(path_, "column_names, column_encodings and column_sizes are not lists of equal length");
    for (std::size_t i = 0; i < names->size(); ++i) {
      const std::string *name = (*names)[i].as_string(), *encoding = (*encodings)[i].as_string();
      const double* size = (*sizes)[i].as_number();
      if (!name || !encoding || (size && !(*size >= 1 && *size <= double(image_bytes_max))))
        return bad_mds(path_, fmt::format("column {} is not valid", i));
      out.all.push_back({*name, *encoding, size ? static_cast<std::uint64_t>(*size) : 0});
      if (const auto fixed = out.all.back().number_bytes(); fixed && fixed != out.all.back().bytes)
        return bad_mds(path_, fmt::format("column '{}' has a wrong size", shown_name(*name)));
    }
    RILLE_TRY(out.image, only(out, "image", "", [](const Column& c) { return c.is_image(); }));
    RILLE_TRY(out.label, only(out, "label", index_.labels(), [](const Column& c) { return c.number_bytes() > 0; }));
    return out;
  }

  // The only column that fits, or the one with this name.
  template <class Fits>
  Result<std::size_t> only(const Columns& columns, const char* what, std::string_view name, const Fits& fits) const {
    std::optional<std::size_t> found;
    std::string list;
    int count = 0;
    for (std::size_t i = 0; i < columns.all.size(); ++i) {
      const Column& c = columns.all[i];
      list += fmt::format("{}{} ({})", i ? ", " : "", shown_name(c.name), shown_name(c.encoding));
      if (!fits(c) || (!name.empty() && c.name != name)) continue;
      found = i;
      ++count;
    }
    if (count == 1) return *found;
    return make_error(ErrorKind::invalid,
                      fmt::format("'{}' has {} columns that can be the {}; its columns: {}", path_, count, what, list),
                      "the image is the only column of jpeg, png or bytes; the label the only one of int, or the one "
                      "that `labels` names");
  }

  Result<> read_shard(const Value& shard) {
    asked_.looks();
    const Value& raw = shard["raw_data"];
    const std::string name = raw.text("basename");
    if (shard.text("format") != "mds") return bad_mds(path_, "a shard's format is not mds");
    if (name.empty() || name.front() == '.' || name.find('/') != name.npos || name.find('\0') != name.npos)
      return bad_mds(path_,
                     fmt::format("a shard's basename is '{}', not the name of a file beside it", shown_name(name)));
    RILLE_TRY(const Columns columns, columns_of(shard));
    std::error_code failed;
    const std::string path = index_.folder() + "/" + name;
    if (!std::filesystem::exists(path, failed) && !shard["compression"].is_null())
      return make_error(ErrorKind::invalid,
                        fmt::format("the shard '{}' is compressed ({}): Rille reads uncompressed shards", path,
                                    shown_name(shard["compression"].to_json())),
                        "write the data set with compression=None; JPEG and PNG do not get smaller by it");
    RILLE_TRY(const ReadableFile file, ReadableFile::open(path));
    RILLE_CHECK(index_.add_file(name));
    return read_samples(file, columns, shard.number("samples", -1));
  }

  Result<> read_samples(const ReadableFile& file, const Columns& columns, double samples) {
    std::uint32_t count = 0;
    RILLE_CHECK(file.read(0, reinterpret_cast<char*>(&count), sizeof count));
    if (count != samples)
      return bad_mds(file.path(), fmt::format("it has {} samples, index.json says {}", count, samples));
    constexpr std::size_t piece = 1 << 14;  // places that are read at a time
    std::vector<std::uint32_t> places(piece + 1);
    for (std::uint64_t first = 0; first < count; first += piece) {
      const auto here = std::min<std::uint64_t>(piece, count - first);
      RILLE_CHECK(
          file.read((first + 1) * sizeof count, reinterpret_cast<char*>(places.data()), (here + 1) * sizeof count));
      for (std::uint64_t i = 0; i < here; ++i) {
        const std::uint64_t begin = places[i], end = places[i + 1];
        if (begin < (std::uint64_t{count} + 2) * sizeof count || begin > end || end > file.size())
          return bad_mds(file.path(), fmt::format("sample {} is not within it", first + i));
        RILLE_CHECK(read_sample(file, columns, first + i, begin, end));
      }
      asked_.looks();
    }
    return success();
  }

  Result<> read_sample(const ReadableFile& file, const Columns& columns, std::uint64_t number, std::uint64_t begin,
                       std::uint64_t end) {
    std::uint64_t any = 0;
    for (const Column& c : columns.all) any += c.bytes == 0;
    std::vector<std::uint32_t> sizes(any);
    const auto wrong = [&] { return bad_mds(file.path(), fmt::format("the sizes in sample {} are wrong", number)); };
    if (any * sizeof sizes[0] > end - begin) return wrong();
    RILLE_CHECK(file.read(begin, reinterpret_cast<char*>(sizes.data()), any * sizeof sizes[0]));
    std::uint64_t at = begin + any * sizeof sizes[0], image_at = 0, image_bytes = 0, label_at = 0;
    for (std::size_t i = 0, sized = 0; i < columns.all.size(); ++i) {
      const std::uint64_t bytes = columns.all[i].bytes ? columns.all[i].bytes : sizes[sized++];
      if (bytes > end - at) return wrong();
      if (i == columns.image) image_at = at, image_bytes = bytes;
      if (i == columns.label) label_at = at;
      at += bytes;
    }
    if (at != end) return wrong();
    std::int64_t label = 0;
    const Column& column = columns.all[columns.label];
    RILLE_CHECK(file.read(label_at, reinterpret_cast<char*>(&label), column.number_bytes()));
    const auto unused_bits = 64 - 8 * column.number_bytes();
    if (column.encoding.front() == 'i') label = label << unused_bits >> unused_bits;  // with its sign
    return index_.add(image_at, image_bytes, label);
  }

  ImageIndex& index_;
  const Asked& asked_;
  const std::string path_ = index_.folder() + "/index.json";
};

}  // namespace

Result<> index_mds(ImageIndex& index, const Asked& asked) { return MdsReader(index, asked).read_all(); }

}  // namespace rille::data
