#include "runtime/compute/data/images_dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "runtime/compute/data/cursor.hpp"
#include "runtime/compute/data/permutation.hpp"
#include "runtime/compute/device/lane.hpp"

namespace rille::data {

namespace {

constexpr std::int64_t size_max = 1 << 14;
constexpr std::uint64_t held_back_key = 0x76616c6964617465;  // a constant: the validation part is equal in every run
constexpr std::uint64_t damaged_max = 100;                   // images in a row that are passed over

Error wrong_options(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::invalid, "images: " + std::move(message), std::move(hint));
}

Result<> check(ImagesOptions& o) {
  if (o.size < 1 || o.size > size_max)
    return wrong_options(fmt::format("size = {}: expected 1 to {}", o.size, size_max));
  if (!o.resize) o.resize = o.size * 8 / 7;
  if (o.resize < o.size || o.resize > 2 * size_max)
    return wrong_options(fmt::format("resize = {}: expected {} (the size) to {}", o.resize, o.size, 2 * size_max));
  if (!(o.validation >= 0 && o.validation < 1))
    return wrong_options(fmt::format("split = {}: expected a number from 0 to below 1", o.validation));
  if (!(o.scale_least > 0 && o.scale_least <= o.scale_most && o.scale_most <= 1))
    return wrong_options(fmt::format("scale = {{ {}, {} }}: expected two fractions of the area, the smaller one first",
                                     o.scale_least, o.scale_most));
  for (std::size_t c = 0; c < 3; ++c)
    if (!std::isfinite(o.mean[c]) || !std::isfinite(o.deviation[c]) || o.deviation[c] <= 0)
      return wrong_options(fmt::format("mean = {}, deviation = {}: expected numbers, and deviations above 0", o.mean[c],
                                       o.deviation[c]));
  return success();
}

Normal normal_of(const ImagesOptions& o) {
  Normal normal;
  for (std::size_t c = 0; c < 3; ++c) {
    normal.factor[c] = static_cast<float>(1 / (255 * o.deviation[c]));
    normal.offset[c] = static_cast<float>(-o.mean[c] / o.deviation[c]);
  }
  return normal;
}

// Random numbers of one place, apart from those of the order.
class Numbers {
 public:
  Numbers(std::uint64_t seed, std::uint64_t place) : key_(mixed(mixed(seed ^ 0x696d616765733a32) ^ place)) {}
  double between(double low, double high) { return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53); }
  int below(int end) { return static_cast<int>(next() % static_cast<std::uint64_t>(end)); }

 private:
  std::uint64_t next() { return mixed(key_ + drawn_++); }
  std::uint64_t key_, drawn_ = 0;
};

ImageFrame frame_of(const PixelBox& box, int size, bool mirrored) {
  const auto axis = [size](int first, int count) {
    return Axis{double(first), double(count) / size, size, first, first + count};
  };
  return {axis(box.left, box.width), axis(box.top, box.height), mirrored};
}

}  // namespace

// As torchvision's RandomResizedCrop: ten attempts, then the largest box in the middle that has an allowed ratio.
ImageFrame random_frame(ImageSize image, const ImagesOptions& options, std::uint64_t place) {
  constexpr double ratio_least = 3.0 / 4, ratio_most = 4.0 / 3;
  constexpr int attempts = 10;
  Numbers numbers(options.seed, place);
  const bool mirrored = numbers.below(2) == 1;
  const int size = static_cast<int>(options.size);
  const double area = double(image.width) * image.height;
  for (int i = 0; i < attempts; ++i) {
    const double wanted = area * numbers.between(options.scale_least, options.scale_most);
    const double ratio = std::exp(numbers.between(std::log(ratio_least), std::log(ratio_most)));
    const double width = std::nearbyint(std::sqrt(wanted * ratio)), height = std::nearbyint(std::sqrt(wanted / ratio));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    const int w = static_cast<int>(width), h = static_cast<int>(height);
    const int top = numbers.below(image.height - h + 1), left = numbers.below(image.width - w + 1);
    return frame_of({left, top, w, h}, size, mirrored);
  }
  int w = image.width, h = image.height;
  if (double(w) / h < ratio_least) h = std::max(1, int(std::nearbyint(w / ratio_least)));
  else if (double(w) / h > ratio_most) w = std::max(1, int(std::nearbyint(h * ratio_most)));
  return frame_of({(image.width - w) / 2, (image.height - h) / 2, w, h}, size, mirrored);
}

ImageFrame middle_frame(ImageSize image, const ImagesOptions& options) {
  const auto shorter = std::min(image.width, image.height);
  const auto axis = [&](int pixels) {
    const std::int64_t resized = options.resize * pixels / shorter;
    const double first = std::nearbyint(double(resized - options.size) / 2);
    const double scale = double(pixels) / double(resized);
    return Axis{first * scale, scale, static_cast<int>(options.size), 0, pixels};
  };
  return {axis(image.width), axis(image.height), false};
}

Result<> draw_frame(std::string_view bytes, const std::string& name, const ImageFrame& frame, const Normal& normal,
                    const std::shared_ptr<MemoryUse>& memory, float* out) {
  const auto x = frame.x.needed(), y = frame.y.needed();
  const int divisor_max = static_cast<int>(std::min({frame.x.scale, frame.y.scale, 8.0}));
  RILLE_TRY(const Pixels pixels,
            decode_image(bytes, name, {x[0], y[0], x[1] - x[0], y[1] - y[0]}, divisor_max, memory));
  resize(pixels, frame.x, frame.y, normal, frame.mirrored, out);
  return success();
}

std::uint64_t ImagesDataset::Data::image_at(bool validation, std::uint64_t place) const {
  const std::uint64_t held_back = index.size() - training;
  const auto spread = [&](std::uint64_t i) { return held_back ? Permutation(index.size(), held_back_key)(i) : i; };
  if (validation) return spread(training + place % held_back);
  const std::uint64_t epoch = place / training, at = place % training;
  return spread(options.train ? Permutation(training, order_key(options.seed, epoch))(at) : at);
}

Result<> ImagesDataset::Data::draw(std::uint64_t image, bool validation, std::uint64_t place, float* row) const {
  MemoryHeld held;
  RILLE_TRY(const std::string bytes, index.read(image, memory, held));
  const std::string name = index.name(image);
  RILLE_TRY(const ImageSize size, image_size(bytes, name));
  const bool random = options.train && !validation;
  const ImageFrame frame = random ? random_frame(size, options, place) : middle_frame(size, options);
  return draw_frame(bytes, name, frame, normal, memory, row);
}

Result<std::int32_t> ImagesDataset::Data::make(bool validation, std::uint64_t place, float* row) {
  const std::uint64_t part = validation ? index.size() - training : training;
  for (std::uint64_t passed = 0;; ++passed) {
    // within the epoch, so that every replacement is an image of the same part and order
    const std::uint64_t at = place / part * part + (place % part + passed) % part;
    const std::uint64_t image = image_at(validation, at);
    const Result<> drawn = draw(image, validation, place, row);
    if (drawn) return index.label(image);
    const bool pass = options.skip_damaged && drawn.error().kind == ErrorKind::integrity;
    if (!pass || passed + 1 == std::min(damaged_max, part)) return drawn.error();
    ++damaged;
  }
}

Result<ImagesDataset> ImagesDataset::open(const std::string& path, const ImagesOptions& options, const Asked& asked,
                                          std::shared_ptr<MemoryUse> memory, int threads) {
  ImagesOptions checked = options;
  RILLE_CHECK(check(checked));
  RILLE_TRY(ImageIndex index, ImageIndex::open(path, options.labels, asked));
  ImagesDataset set;
  const std::uint64_t all = index.size();
  set.data_.reset(new Data{std::move(index), checked, normal_of(checked), all, memory});
  set.data_->training -= static_cast<std::uint64_t>(std::floor(static_cast<double>(all) * checked.validation));
  const auto values = static_cast<std::size_t>(3 * checked.size * checked.size);
  set.loader_ = std::make_unique<ImageLoader>(
      threads > 0 ? threads : device::Lane::threads_for(0), values,
      [data = set.data_.get()](bool validation, std::uint64_t place, float* row) {
        return data->make(validation, place, row);
      },
      std::move(memory));
  return set;
}

Result<ImageBatch> ImagesDataset::next(std::int64_t batch, int rank, int world, const Look& look) {
  const auto rows = static_cast<std::uint64_t>(batch), step = rows * static_cast<std::uint64_t>(world);
  RILLE_TRY(ImageBatch out,
            loader_->take({false, cursor_ + rows * static_cast<std::uint64_t>(rank), rows, step}, look));
  cursor_ += step;
  return out;
}

Result<ImageBatch> ImagesDataset::validation(std::uint64_t first, std::int64_t batch, const Look& look) {
  const auto rows = static_cast<std::uint64_t>(batch);
  return loader_->take({true, first, rows, rows}, look);
}

Value ImagesDataset::identity() const {
  const ImagesOptions& o = data_->options;
  Value v;
  v.set("digest", data_->index.digest()).set("validation", o.validation).set("train", o.train);
  v.set("seed", std::to_string(o.seed)).set("size", o.size).set("resize", o.resize).set("skip_damaged", o.skip_damaged);
  v.set("scale", fmt::format("{}-{}", o.scale_least, o.scale_most));
  v.set("mean", fmt::format("{}", fmt::join(o.mean, " ")))
      .set("deviation", fmt::format("{}", fmt::join(o.deviation, " ")));
  return v;
}

Value ImagesDataset::state() const { return state_of(identity(), cursor_); }

Result<> ImagesDataset::restore(const Value& state) {
  RILLE_TRY(cursor_, cursor_of(identity(), state));
  return success();
}

}  // namespace rille::data
