#include "runtime/compute/data/arrays_dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/compute/data/cursor.hpp"
#include "runtime/compute/data/permutation.hpp"

namespace rille::data {

namespace {

constexpr std::size_t arrays_max = 1000;
constexpr std::int64_t padding_max = 1 << 20;

Error bad(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::invalid, "arrays: " + std::move(message), std::move(hint));
}

std::string describe(const Array& a) { return fmt::format("'{}' [{}]", a.name, fmt::join(a.shape, ", ")); }

void add_to(store::Hasher& hasher, const Array& a, const Look& look) {
  hasher.update(fmt::format("{}:{}:{};", a.name, name_of(a.dtype), fmt::join(a.shape, ",")));
  hash_data(hasher, a.bytes, look);
}

Result<void> check_images(const Array& a, ArraysOptions& o) {
  if (a.shape.size() != 4)
    return bad(fmt::format("{} is not images: flip, crop and padding need [n, channels, height, width]", describe(a)));
  if (o.padding < 0 || o.crop_height < 0 || o.crop_width < 0) return bad("crop and padding must not be negative");
  if (o.padding > padding_max) return bad(fmt::format("padding = {}: at most {} are possible", o.padding, padding_max));
  const std::int64_t height = a.shape[2] + 2 * o.padding, width = a.shape[3] + 2 * o.padding;
  if (!o.crop_height) o.crop_height = a.shape[2];
  if (!o.crop_width) o.crop_width = a.shape[3];
  if (o.crop_height > height || o.crop_width > width) {
    return bad(fmt::format("{} with a padding of {} cannot be cropped to {} x {}", describe(a), o.padding,
                           o.crop_height, o.crop_width));
  }
  return success();
}

}  // namespace

Result<ArraysDataset> ArraysDataset::create(std::vector<Array> arrays, const ArraysOptions& options, const Look& look) {
  ArraysDataset set;
  set.options_ = options;
  if (arrays.empty()) return bad("no array is given", "pass at least one tensor");
  if (arrays.size() > arrays_max)
    return bad(fmt::format("{} arrays are given: at most {} are possible", arrays.size(), arrays_max));
  if (!(options.validation >= 0 && options.validation < 1))
    return bad(fmt::format("split = {}: expected a number from 0 to below 1", options.validation));
  store::Hasher hasher;
  for (const Array& a : arrays) {
    if (a.shape.empty() || a.shape[0] < 1) return bad(describe(a) + " has no rows");
    if (a.shape[0] != arrays[0].shape[0])
      return bad(fmt::format("{} and {} have different numbers of rows", describe(arrays[0]), describe(a)));
    set.row_bytes_.push_back(a.bytes.size() / static_cast<std::size_t>(a.shape[0]));
    add_to(hasher, a, look);
    if (look) look();
  }
  if (set.changes()) RILLE_CHECK(check_images(arrays[0], set.options_));
  set.all_ = static_cast<std::uint64_t>(arrays[0].shape[0]);
  set.training_ = set.all_ - static_cast<std::uint64_t>(std::floor(static_cast<double>(set.all_) * options.validation));
  set.digest_ = hasher.finish().xxh3;
  set.arrays_ = std::move(arrays);
  return set;
}

std::vector<std::int64_t> ArraysDataset::row_shape(std::size_t array) const {
  std::vector<std::int64_t> shape(arrays_[array].shape.begin() + 1, arrays_[array].shape.end());
  if (array == 0 && changes()) shape[1] = options_.crop_height, shape[2] = options_.crop_width;
  return shape;
}

ArraysDataset::Change ArraysDataset::change_of(std::uint64_t position) const {
  if (!changes()) return {};
  const auto& shape = arrays_[0].shape;
  // A random number for augmentation, independent of the numbers that determine the order of rows.
  const std::uint64_t drawn = mixed(mixed(options_.seed ^ 0x6368616e67657321) ^ position);
  const auto place = [](std::uint64_t number, std::int64_t room) {
    return static_cast<std::int64_t>(number % static_cast<std::uint64_t>(room + 1));
  };
  return {place(drawn & 0xffffff, shape[2] + 2 * options_.padding - options_.crop_height),
          place(drawn >> 24 & 0xffffff, shape[3] + 2 * options_.padding - options_.crop_width),
          options_.flip && drawn >> 63 != 0};
}

ArraysDataset::Change ArraysDataset::middle() const {
  if (!changes()) return {};
  const auto& shape = arrays_[0].shape;
  return {(shape[2] + 2 * options_.padding - options_.crop_height) / 2,
          (shape[3] + 2 * options_.padding - options_.crop_width) / 2, false};
}

void ArraysDataset::draw_image(std::uint64_t row, const Change& change, std::vector<std::byte>& into,
                               Pace& pace) const {
  const Array& a = arrays_[0];
  const std::int64_t channels = a.shape[1], height = a.shape[2], width = a.shape[3];
  const auto size = size_bytes(a.dtype);
  const auto* from = reinterpret_cast<const std::byte*>(a.bytes.data()) + row * row_bytes_[0];
  std::size_t at = into.size();
  // fills the crop with zeros, the value of the padding
  into.resize(at + static_cast<std::size_t>(channels * options_.crop_height * options_.crop_width) * size);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t y = 0; y < options_.crop_height; ++y) {
      const std::int64_t source = y + change.top - options_.padding, x0 = change.left - options_.padding;
      const std::int64_t begin = std::max<std::int64_t>(0, -x0), end = std::min(options_.crop_width, width - x0);
      if (source >= 0 && source < height && begin < end) {
        const auto* line = from + static_cast<std::size_t>((c * height + source) * width + x0 + begin) * size;
        if (!change.mirrored) {
          std::memcpy(into.data() + at + static_cast<std::size_t>(begin) * size, line,
                      static_cast<std::size_t>(end - begin) * size);
        } else {
          for (std::int64_t x = begin; x < end; ++x, line += size)
            std::memcpy(into.data() + at + static_cast<std::size_t>(options_.crop_width - 1 - x) * size, line, size);
        }
      }
      at += static_cast<std::size_t>(options_.crop_width) * size;
      pace.did(static_cast<std::size_t>(options_.crop_width) * size);
    }
  }
}

// The memory is reserved first, so that no more than the batch needs is used.
std::vector<std::vector<std::byte>> ArraysDataset::room_for(std::int64_t batch) const {
  std::vector<std::vector<std::byte>> out(arrays_.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::size_t bytes = size_bytes(arrays_[i].dtype);
    for (const std::int64_t n : row_shape(i)) bytes *= static_cast<std::size_t>(n);
    out[i].reserve(bytes * static_cast<std::size_t>(batch));
  }
  return out;
}

void ArraysDataset::draw(std::uint64_t row, const Change& change, std::vector<std::vector<std::byte>>& into,
                         Pace& pace) const {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (i == 0 && changes()) {
      draw_image(row, change, into[0], pace);
      continue;
    }
    const auto* from = reinterpret_cast<const std::byte*>(arrays_[i].bytes.data()) + row * row_bytes_[i];
    into[i].insert(into[i].end(), from, from + row_bytes_[i]);
    pace.did(row_bytes_[i]);
  }
}

std::vector<std::vector<std::byte>> ArraysDataset::next(std::int64_t batch, int rank, int world, const Look& look) {
  auto out = room_for(batch);
  Pace pace(look);
  const std::uint64_t first = cursor_ + static_cast<std::uint64_t>(rank * batch);
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::uint64_t place = first + static_cast<std::uint64_t>(i);
    const std::uint64_t epoch = place / training_, at = place % training_;
    const std::uint64_t row = options_.shuffle ? Permutation(training_, order_key(options_.seed, epoch))(at) : at;
    draw(row, change_of(place), out, pace);
  }
  cursor_ += static_cast<std::uint64_t>(world * batch);
  return out;
}

std::vector<std::vector<std::byte>> ArraysDataset::validation(std::uint64_t first, std::int64_t batch,
                                                              const Look& look) const {
  auto out = room_for(batch);
  Pace pace(look);
  for (std::int64_t i = 0; i < batch; ++i)
    draw(training_ + (first + static_cast<std::uint64_t>(i)) % validation_rows(), middle(), out, pace);
  return out;
}

Value ArraysDataset::identity() const {
  Value v;
  v.set("digest", digest_).set("validation", options_.validation).set("shuffle", options_.shuffle);
  v.set("seed", std::to_string(options_.seed)).set("flip", options_.flip).set("padding", options_.padding);
  v.set("crop", fmt::format("{}x{}", options_.crop_height, options_.crop_width));
  return v;
}

Value ArraysDataset::state() const { return state_of(identity(), cursor_); }

Result<> ArraysDataset::restore(const Value& state) {
  RILLE_TRY(cursor_, cursor_of(identity(), state));
  return success();
}

}  // namespace rille::data
