#include "runtime/compute/data/bytes_dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <vector>

#include "runtime/compute/data/cursor.hpp"
#include "runtime/compute/data/token_files.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"
#include "runtime/core/store/pages.hpp"

namespace rille::data {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t directory_bytes_max = std::int64_t{4} << 30;
// a constant: the order of validation samples is equal in every run
constexpr std::uint64_t validation_key = 0x76616c6964617465;

Error too_short(const std::string& path, std::string_view part, std::uint64_t size, std::int64_t context,
                const char* unit) {
  return make_error(ErrorKind::invalid,
                    fmt::format("'{}' is too short: {} has {} {} and one sample of context {} needs {}", path, part,
                                size, unit, context, context + 1),
                    "use more text, a smaller context, or a smaller validation share");
}

Result<std::string> read_directory(const std::string& path, const Look& look, const Room& room) {
  RILLE_TRY(auto files, files_of(path, look));
  std::int64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code failed;
    bytes += static_cast<std::int64_t>(std::min<std::uintmax_t>(fs::file_size(file, failed), directory_bytes_max + 1));
    if (bytes > directory_bytes_max)
      return make_error(
          ErrorKind::invalid,
          fmt::format("the files of '{}' exceed the limit of {}", path, format_size_bytes(directory_bytes_max)),
          "join the files into one, which is mapped instead of read into memory");
  }
  if (room) RILLE_CHECK(room(bytes));
  std::string out;
  out.reserve(static_cast<std::size_t>(bytes));
  Pace pace(look);
  for (const std::string& file : files) {
    RILLE_TRY(auto map, store::MappedFile::open(file));
    for (std::string_view rest = map.view(); !rest.empty(); rest.remove_prefix(std::min(rest.size(), Pace::bytes))) {
      out += rest.substr(0, Pace::bytes);
      pace.did(Pace::bytes);
    }
  }
  return out;
}

std::string digest_of(std::string_view bytes, const Look& look) {
  store::Hasher hasher;
  hasher.update(fmt::format("{}:", bytes.size()));
  hash_data(hasher, bytes, look);
  return hasher.finish().xxh3;
}

// A contiguous range of elements (bytes or token ids) in memory.
struct Segment {
  const char* data;
  int width;                 // bytes per element: 1, 2 or 4
  std::uint64_t first, end;  // positions of the range in the concatenated data set
};

// The training or validation part of the data set, and how it is cut into windows.
struct Section {
  std::uint64_t first = 0, elements = 0;
  std::uint64_t windows = 0;
  std::uint64_t phases = 1;  // how many positions the first window may start at

  Section(std::uint64_t begin, std::uint64_t size, std::uint64_t context) : first(begin), elements(size) {
    if (size <= context) return;
    // If there are several windows, use one fewer than fit: the cuts can then be shifted by up to one window.
    windows = std::max<std::uint64_t>(1, (size - context) / context);
    phases = std::min<std::uint64_t>(context, size - windows * context);
  }
};

template <class T>
T element(const char* at, int width) {
  if (width == 1) return static_cast<T>(static_cast<unsigned char>(*at));
  if (width == 2) {
    std::uint16_t id;
    std::memcpy(&id, at, sizeof id);
    return static_cast<T>(id);
  }
  std::uint32_t id;
  std::memcpy(&id, at, sizeof id);
  return static_cast<T>(id);
}

Result<> check_options(const BytesOptions& options) {
  if (options.context < 1)
    return make_error(ErrorKind::invalid, fmt::format("context = {}: expected at least 1", options.context));
  if (!(options.validation >= 0 && options.validation < 1))
    return make_error(ErrorKind::invalid,
                      fmt::format("validation = {}: expected a number from 0 to below 1", options.validation));
  return success();
}

std::uint64_t held_back(std::uint64_t all, double share) {
  return static_cast<std::uint64_t>(std::floor(static_cast<double>(all) * share));
}

}  // namespace

struct BytesDataset::Data {
  BytesOptions options;
  std::string path;
  store::MappedFile map;  // exactly one of map, text and files holds the elements
  std::string text;
  std::vector<TokenFile> files;
  std::vector<Segment> segments;
  std::string digest;
  Section training, validation;
  std::uint64_t cursor = 0;

  const Section& part(Split split) const { return split == Split::train ? training : validation; }

  template <class T>
  void copy(std::uint64_t first, std::uint64_t count, T* out, Pace& pace) const {
    auto segment = std::upper_bound(segments.begin(), segments.end(), first,
                                    [](std::uint64_t at, const Segment& s) { return at < s.end; });
    while (count > 0) {
      const std::uint64_t here = std::min({count, segment->end - first, Pace::bytes});
      const char* at = segment->data + (first - segment->first) * static_cast<std::uint64_t>(segment->width);
      for (std::uint64_t i = 0; i < here; ++i, at += segment->width) *out++ = element<T>(at, segment->width);
      first += here, count -= here;
      if (first == segment->end) ++segment;
      pace.did(here);
    }
  }
};

BytesDataset::BytesDataset(std::unique_ptr<Data> data) : data_(std::move(data)) {}
BytesDataset::BytesDataset(BytesDataset&&) noexcept = default;
BytesDataset& BytesDataset::operator=(BytesDataset&&) noexcept = default;
BytesDataset::~BytesDataset() = default;

Result<BytesDataset> BytesDataset::open(const std::string& path, const BytesOptions& options, const Look& look,
                                        const Room& room) {
  RILLE_CHECK(check_options(options));
  std::error_code failed;
  store::MappedFile map;
  std::string text;
  bool directory = fs::is_directory(path, failed);
  if (directory) {
    RILLE_TRY(text, read_directory(path, look, room));
  } else {
    RILLE_TRY(map, store::MappedFile::open(path));
  }
  std::unique_ptr<Data> data(
      new Data{options, path, std::move(map), std::move(text), {}, {}, {}, {0, 0, 1}, {0, 0, 1}});
  std::string_view all = directory ? std::string_view(data->text) : data->map.view();
  auto context = static_cast<std::size_t>(options.context);
  if (all.size() <= context) return too_short(path, "it", all.size(), options.context, "bytes");
  const std::uint64_t last = held_back(all.size(), options.validation), first = all.size() - last;
  data->segments = {{all.data(), 1, 0, all.size()}};
  data->training = Section(0, first, context);
  data->validation = Section(first, last, context);
  if (!data->training.windows) return too_short(path, "its training part", first, options.context, "bytes");
  data->digest = digest_of(all, look);
  return BytesDataset(std::move(data));
}

Result<BytesDataset> BytesDataset::open_tokens(std::vector<TokenFile> training, std::vector<TokenFile> validation,
                                               const BytesOptions& options, const Look& look) {
  RILLE_CHECK(check_options(options));
  if (training.empty())
    return make_error(ErrorKind::invalid, "a data set of tokens needs a file", "give the path of a file of token ids");
  std::unique_ptr<Data> data(new Data{options, {}, {}, {}, {}, {}, {}, {0, 0, 1}, {0, 0, 1}});
  const std::string path = training[0].path();
  const bool own = !validation.empty();
  const auto files = training.size();
  data->files = std::move(training);
  std::move(validation.begin(), validation.end(), std::back_inserter(data->files));
  std::uint64_t all = 0, first = 0;
  store::Hasher hasher;
  for (std::size_t i = 0; i < data->files.size(); ++i) {
    const TokenFile& file = data->files[i];
    data->segments.push_back({file.ids().data(), file.width_bytes(), all, all + file.count()});
    all += file.count();
    if (i + 1 == files) first = all;
    hasher.update(fmt::format("{}:{}:{};", i < files ? "t" : "v", file.width_bytes(), digest_of(file.ids(), look)));
  }
  if (own) data->options.validation = 0;
  else first -= held_back(all, options.validation);
  const auto context = static_cast<std::uint64_t>(options.context);
  data->training = Section(0, first, context);
  data->validation = Section(first, all - first, context);
  if (!data->training.windows) return too_short(path, "the training part", first, options.context, "tokens");
  data->digest = hasher.finish().xxh3;
  return BytesDataset(std::move(data));
}

const BytesOptions& BytesDataset::options() const { return data_->options; }
std::string_view BytesDataset::bytes(Split split) const {
  const Section& part = data_->part(split);
  return is_tokens() ? std::string_view() : std::string_view(data_->segments[0].data + part.first, part.elements);
}
std::uint64_t BytesDataset::elements(Split split) const { return data_->part(split).elements; }
Result<> BytesDataset::check_files() const {
  RILLE_CHECK(store::check_pages(data_->map.view(), data_->path));
  for (const TokenFile& file : data_->files) RILLE_CHECK(store::check_pages(file.ids(), file.path()));
  return success();
}
bool BytesDataset::is_tokens() const { return !data_->files.empty(); }
std::uint64_t BytesDataset::windows(Split split) const { return data_->part(split).windows; }
const std::string& BytesDataset::digest() const { return data_->digest; }
std::uint64_t BytesDataset::cursor() const { return data_->cursor; }
void BytesDataset::seek(std::uint64_t cursor) { data_->cursor = cursor; }
std::uint64_t BytesDataset::epoch() const { return data_->cursor / data_->training.windows; }

std::uint64_t BytesDataset::start_of(Split split, std::uint64_t i) const {
  const Section& part = data_->part(split);
  std::uint64_t epoch = i / part.windows, window = i % part.windows, phase = 0;
  if (split == Split::validation) {
    window = Permutation(part.windows, validation_key)(window);
  } else if (data_->options.shuffle) {
    const std::uint64_t key = order_key(data_->options.seed, epoch);
    window = Permutation(part.windows, key)(window);
    phase = mixed(key) % part.phases;
  }
  return part.first + phase + window * static_cast<std::uint64_t>(data_->options.context);
}

BytesDataset::Sample BytesDataset::sample(Split split, std::uint64_t i) const {
  const auto* x = reinterpret_cast<const std::uint8_t*>(data_->segments[0].data) + start_of(split, i);
  return {x, x + 1, i / data_->part(split).windows};
}

template <class T>
void BytesDataset::copy_sample(Split split, std::uint64_t i, T* x, T* y, Pace& pace) const {
  const std::uint64_t start = start_of(split, i), context = static_cast<std::uint64_t>(data_->options.context);
  data_->copy(start, context, x, pace);
  data_->copy(start + 1, context, y, pace);
}

template <class T>
void BytesDataset::next_batch(std::int64_t batch, T* out_x, T* out_y, int rank, int world, const Look& look) {
  std::int64_t context = data_->options.context;
  std::uint64_t first = data_->cursor + static_cast<std::uint64_t>(rank * batch);
  Pace pace(look);
  for (std::int64_t row = 0; row < batch; ++row)
    copy_sample(Split::train, first + static_cast<std::uint64_t>(row), out_x + row * context, out_y + row * context,
                pace);
  data_->cursor += static_cast<std::uint64_t>(world * batch);
}

template <class T>
void BytesDataset::validation_batch(std::uint64_t first, std::int64_t batch, T* out_x, T* out_y,
                                    const Look& look) const {
  std::int64_t context = data_->options.context;
  Pace pace(look);
  for (std::int64_t row = 0; row < batch; ++row)
    copy_sample(Split::validation, first + static_cast<std::uint64_t>(row), out_x + row * context,
                out_y + row * context, pace);
}

template void BytesDataset::next_batch(std::int64_t, std::uint8_t*, std::uint8_t*, int, int, const Look&);
template void BytesDataset::next_batch(std::int64_t, std::int32_t*, std::int32_t*, int, int, const Look&);
template void BytesDataset::validation_batch(std::uint64_t, std::int64_t, std::uint8_t*, std::uint8_t*,
                                             const Look&) const;
template void BytesDataset::validation_batch(std::uint64_t, std::int64_t, std::int32_t*, std::int32_t*,
                                             const Look&) const;

// The values that determine the sequence of samples. A saved state contains them, to detect a different data set.
static Value identity(const BytesOptions& options, const std::string& digest) {
  Value v;
  v.set("digest", digest).set("context", options.context).set("validation", options.validation);
  // stored as text: a double has only 53 bits
  v.set("shuffle", options.shuffle).set("seed", std::to_string(options.seed));
  return v;
}

Value BytesDataset::state() const { return state_of(identity(data_->options, data_->digest), data_->cursor); }

Result<> BytesDataset::restore(const Value& state) {
  RILLE_TRY(data_->cursor, cursor_of(identity(data_->options, data_->digest), state));
  return success();
}

Result<double> bigram_nats_per_byte(std::string_view training, std::string_view validation, double add,
                                    const Look& look) {
  if (training.size() < 2 || validation.size() < 2)
    return make_error(
        ErrorKind::invalid,
        fmt::format("a bigram model needs at least two bytes for training and for validation, got {} and {}",
                    training.size(), validation.size()));
  if (!(add > 0)) return make_error(ErrorKind::invalid, fmt::format("smoothing = {}: expected a number above 0", add));
  constexpr std::size_t symbols = 256;
  std::vector<double> pairs(symbols * symbols, add), totals(symbols, add * symbols);
  auto byte = [](std::string_view s, std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(s[i]));
  };
  const auto look_at = [&](std::size_t i) {
    if (i % Pace::bytes == 0 && look) look();
  };
  for (std::size_t i = 1; i < training.size(); ++i) {
    look_at(i);
    pairs[byte(training, i - 1) * symbols + byte(training, i)] += 1;
    totals[byte(training, i - 1)] += 1;
  }
  double nats = 0;
  for (std::size_t i = 1; i < validation.size(); ++i) {
    look_at(i);
    nats -= std::log(pairs[byte(validation, i - 1) * symbols + byte(validation, i)] / totals[byte(validation, i - 1)]);
  }
  return nats / static_cast<double>(validation.size() - 1);
}

}  // namespace rille::data
