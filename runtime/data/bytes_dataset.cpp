#include "runtime/data/bytes_dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <vector>

#include "runtime/base/units.hpp"
#include "runtime/store/file.hpp"
#include "runtime/store/hash.hpp"

namespace rille::data {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t directory_bytes_max = std::int64_t{4} << 30;
constexpr int feistel_rounds = 6;
constexpr std::uint64_t validation_key =
    0x76616c6964617465;  // any constant: the order is to be the same in every run

// SplitMix64's finaliser (Steele, Lea and Flood, 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

Error too_short(const std::string& path, std::string_view part, std::size_t size, std::int64_t context) {
  return make_error(ErrorKind::invalid,
                    fmt::format("'{}' is too short: {} has {} bytes and one sample of context {} needs {}",
                                path, part, size, context, context + 1),
                    "take more text, a smaller context, or a smaller validation share");
}

Result<std::vector<std::string>> files_below(const std::string& path) {
  std::vector<std::string> files;
  std::error_code failed;
  fs::recursive_directory_iterator it(path, failed), end;
  for (; !failed && it != end; it.increment(failed)) {
    bool hidden = it->path().filename().native().front() == '.';
    if (hidden && it->is_directory(failed)) it.disable_recursion_pending();
    if (!hidden && it->is_regular_file(failed)) files.push_back(it->path());
  }
  if (failed) return errno_error("cannot list", path, failed.value());
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::string> read_directory(const std::string& path) {
  RILLE_TRY(auto files, files_below(path));
  if (files.empty())
    return make_error(ErrorKind::invalid, fmt::format("the directory '{}' has no files", path),
                      "name a directory of text files, or one file");
  std::string out;
  for (const std::string& file : files) {
    RILLE_TRY(auto map, store::MappedFile::open(file));
    if (static_cast<std::int64_t>(out.size() + map.size()) > directory_bytes_max)
      return make_error(
          ErrorKind::invalid,
          fmt::format("the files of '{}' pass the limit of {}", path, format_size_bytes(directory_bytes_max)),
          "join them into one file, which is mapped and not read into memory");
    out += map.view();
  }
  return out;
}

// All bytes up to a size that costs little; above it, pieces spread over the whole.
std::string digest_of(std::string_view bytes) {
  constexpr std::size_t whole_bytes_max = 256 << 20, pieces = 2048, piece_bytes = 64 << 10;
  store::Hasher hasher;
  hasher.update(fmt::format("{}:", bytes.size()));
  if (bytes.size() <= whole_bytes_max) {
    hasher.update(bytes);
  } else {
    std::size_t stride = (bytes.size() - piece_bytes) / (pieces - 1);
    for (std::size_t i = 0; i < pieces; ++i) hasher.update(bytes.substr(i * stride, piece_bytes));
  }
  return hasher.finish().xxh3;
}

// A part and the windows in it.
struct Part {
  std::string_view bytes;
  std::uint64_t windows = 0;
  std::uint64_t phases = 1;  // places where the first window may begin

  Part(std::string_view all, std::uint64_t context) : bytes(all) {
    if (all.size() <= context) return;
    // One window fewer than would fit, when there are several, leaves room to move the cuts by up to a
    // window.
    windows = std::max<std::uint64_t>(1, (all.size() - context) / context);
    phases = std::min<std::uint64_t>(context, all.size() - windows * context);
  }
};

}  // namespace

Permutation::Permutation(std::uint64_t n, std::uint64_t key) : n_(n), key_(key) {
  half_bits_ = (std::bit_width(n > 0 ? n - 1 : 0) + 1) / 2;
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
}

std::uint64_t Permutation::operator()(std::uint64_t i) const {
  do {
    std::uint64_t left = i >> half_bits_, right = i & half_mask_;
    for (int round = 0; round < feistel_rounds; ++round) {
      std::uint64_t next = left ^ (mix(right ^ mix(key_ + static_cast<std::uint64_t>(round))) & half_mask_);
      left = right, right = next;
    }
    i = left << half_bits_ | right;
  } while (i >= n_);
  return i;
}

struct BytesDataset::Data {
  BytesOptions options;
  store::MappedFile map;  // one of these two holds the bytes
  std::string text;
  std::string digest;
  Part training, validation;
  std::uint64_t cursor = 0;

  const Part& part(Split split) const { return split == Split::train ? training : validation; }
};

BytesDataset::BytesDataset(std::unique_ptr<Data> data) : data_(std::move(data)) {}
BytesDataset::BytesDataset(BytesDataset&&) noexcept = default;
BytesDataset& BytesDataset::operator=(BytesDataset&&) noexcept = default;
BytesDataset::~BytesDataset() = default;

Result<BytesDataset> BytesDataset::open(const std::string& path, const BytesOptions& options) {
  if (options.context < 1)
    return make_error(ErrorKind::invalid, fmt::format("context must be at least 1, not {}", options.context));
  if (!(options.validation >= 0 && options.validation < 1))
    return make_error(ErrorKind::invalid,
                      fmt::format("validation is a share from 0 to below 1, not {}", options.validation));
  std::error_code failed;
  store::MappedFile map;
  std::string text;
  bool directory = fs::is_directory(path, failed);
  if (directory) {
    RILLE_TRY(text, read_directory(path));
  } else {
    RILLE_TRY(map, store::MappedFile::open(path));
  }
  std::unique_ptr<Data> data(new Data{options, std::move(map), std::move(text), {}, {{}, 1}, {{}, 1}});
  std::string_view all = directory ? std::string_view(data->text) : data->map.view();
  auto context = static_cast<std::size_t>(options.context);
  if (all.size() <= context) return too_short(path, "it", all.size(), options.context);
  auto held_back = static_cast<std::size_t>(std::floor(static_cast<double>(all.size()) * options.validation));
  data->training = Part(all.substr(0, all.size() - held_back), context);
  data->validation = Part(all.substr(all.size() - held_back), context);
  if (!data->training.windows)
    return too_short(path, "its training part", data->training.bytes.size(), options.context);
  data->digest = digest_of(all);
  return BytesDataset(std::move(data));
}

const BytesOptions& BytesDataset::options() const { return data_->options; }
std::string_view BytesDataset::bytes(Split split) const { return data_->part(split).bytes; }
std::uint64_t BytesDataset::windows(Split split) const { return data_->part(split).windows; }
const std::string& BytesDataset::digest() const { return data_->digest; }
std::uint64_t BytesDataset::cursor() const { return data_->cursor; }
void BytesDataset::seek(std::uint64_t cursor) { data_->cursor = cursor; }
std::uint64_t BytesDataset::epoch() const { return data_->cursor / data_->training.windows; }

BytesDataset::Sample BytesDataset::sample(Split split, std::uint64_t i) const {
  const Part& part = data_->part(split);
  std::uint64_t epoch = i / part.windows, window = i % part.windows, phase = 0;
  if (split == Split::validation) {
    window = Permutation(part.windows, validation_key)(window);
  } else if (data_->options.shuffle) {
    std::uint64_t key = mix(mix(data_->options.seed) ^ epoch);
    window = Permutation(part.windows, key)(window);
    phase = mix(key) % part.phases;
  }
  const auto* x = reinterpret_cast<const std::uint8_t*>(part.bytes.data()) + phase +
                  window * static_cast<std::uint64_t>(data_->options.context);
  return {x, x + 1, epoch};
}

template <class T>
void BytesDataset::copy_sample(Split split, std::uint64_t i, T* x, T* y) const {
  Sample s = sample(split, i);
  std::copy_n(s.x, data_->options.context, x);
  std::copy_n(s.y, data_->options.context, y);
}

template <class T>
void BytesDataset::next_batch(std::int64_t batch, T* out_x, T* out_y, int rank, int world) {
  std::int64_t context = data_->options.context;
  std::uint64_t first = data_->cursor + static_cast<std::uint64_t>(rank * batch);
  for (std::int64_t row = 0; row < batch; ++row)
    copy_sample(Split::train, first + static_cast<std::uint64_t>(row), out_x + row * context,
                out_y + row * context);
  data_->cursor += static_cast<std::uint64_t>(world * batch);
}

template <class T>
void BytesDataset::validation_batch(std::uint64_t first, std::int64_t batch, T* out_x, T* out_y) const {
  std::int64_t context = data_->options.context;
  for (std::int64_t row = 0; row < batch; ++row)
    copy_sample(Split::validation, first + static_cast<std::uint64_t>(row), out_x + row * context,
                out_y + row * context);
}

template void BytesDataset::next_batch(std::int64_t, std::uint8_t*, std::uint8_t*, int, int);
template void BytesDataset::next_batch(std::int64_t, std::int32_t*, std::int32_t*, int, int);
template void BytesDataset::validation_batch(std::uint64_t, std::int64_t, std::uint8_t*, std::uint8_t*) const;
template void BytesDataset::validation_batch(std::uint64_t, std::int64_t, std::int32_t*, std::int32_t*) const;

// What decides the sequence of samples, as it appears in a state.
static Value identity(const BytesOptions& options, const std::string& digest) {
  Value v;
  v.set("digest", digest).set("context", options.context).set("validation", options.validation);
  v.set("shuffle", options.shuffle)
      .set("seed", std::to_string(options.seed));  // text: a double has only 53 bits
  return v;
}

Value BytesDataset::state() const {
  return identity(data_->options, data_->digest).set("cursor", std::to_string(data_->cursor));
}

Result<> BytesDataset::restore(const Value& state) {
  Value ours = identity(data_->options, data_->digest);
  for (const auto& [key, value] : *ours.as_object())
    if (!(state[key] == value))
      return make_error(ErrorKind::state,
                        fmt::format("cannot continue a data set whose {} was {}: it is {} now", key,
                                    state[key].to_json(), value.to_json()),
                        "open the data set with the same bytes and options as before");
  std::string cursor = state.text("cursor");
  std::uint64_t at = 0;
  auto [end, failed] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), at);
  if (failed != std::errc() || end != cursor.data() + cursor.size())
    return make_error(ErrorKind::state,
                      fmt::format("a data set's cursor cannot be {}", state["cursor"].to_json()));
  data_->cursor = at;
  return success();
}

Result<double> bigram_nats_per_byte(std::string_view training, std::string_view validation, double add) {
  if (training.size() < 2 || validation.size() < 2)
    return make_error(ErrorKind::invalid, fmt::format("a bigram needs two bytes on both sides, not {} and {}",
                                                      training.size(), validation.size()));
  if (!(add > 0))
    return make_error(ErrorKind::invalid, fmt::format("the smoothing must be above 0, not {}", add));
  constexpr std::size_t symbols = 256;
  std::vector<double> pairs(symbols * symbols, add), totals(symbols, add * symbols);
  auto byte = [](std::string_view s, std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(s[i]));
  };
  for (std::size_t i = 1; i < training.size(); ++i) {
    pairs[byte(training, i - 1) * symbols + byte(training, i)] += 1;
    totals[byte(training, i - 1)] += 1;
  }
  double nats = 0;
  for (std::size_t i = 1; i < validation.size(); ++i)
    nats -= std::log(pairs[byte(validation, i - 1) * symbols + byte(validation, i)] /
                     totals[byte(validation, i - 1)]);
  return nats / static_cast<double>(validation.size() - 1);
}

}  // namespace rille::data
