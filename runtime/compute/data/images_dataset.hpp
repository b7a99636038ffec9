// ImagesDataset: labelled images (image_index.hpp says from which files) in batches of f32, decoded when they are
// needed. As in ArraysDataset the order is computed from (seed, epoch), the position is one number, and a part of the
// images may be kept for validation: every split-th by a fixed permutation, because class folders are sorted. What
// happens to an image is computed from (seed, position).
//
// Training rows: a random box of `scale_least` to `scale_most` of the area and a ratio of 3:4 to 4:3, resized to
// size x size, half of them mirrored: the distribution of torchvision's RandomResizedCrop and RandomHorizontalFlip.
// Validation rows, and all rows without `train`: the shorter side resized to `resize`, then the middle. Values are
// (v / 255 - mean) / deviation.
//
// Only one thread may call next() and validation(). Errors: those of ImageIndex and image_codec.hpp; invalid (options);
// state (the saved state is from other data).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/compute/data/image_index.hpp"
#include "runtime/compute/data/image_loader.hpp"
#include "runtime/compute/data/image_resize.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::data {

struct ImagesOptions {
  std::int64_t size = 224;
  std::int64_t resize = 0;  // of the shorter side, in pixels; 0: size * 8 / 7
  bool train = true;        // shuffled and changed at random; else in order
  std::uint64_t seed = 0;
  double validation = 0;      // fraction of the images
  bool skip_damaged = false;  // a damaged image is replaced by the next one of the order
  double scale_least = 0.08, scale_most = 1;
  std::array<double, 3> mean{0.485, 0.456, 0.406}, deviation{0.229, 0.224, 0.225};  // ImageNet's
  std::string labels{};                                                             // as for ImageIndex::open
};

// Where an image's output lies in it.
struct ImageFrame {
  Axis x, y;
  bool mirrored = false;
};
ImageFrame random_frame(ImageSize image, const ImagesOptions& options, std::uint64_t place);
ImageFrame middle_frame(ImageSize image, const ImagesOptions& options);
// Decodes the image and writes three planes of x.outputs * y.outputs values.
Result<> draw_frame(std::string_view bytes, const std::string& name, const ImageFrame& frame, const Normal& normal,
                    const std::shared_ptr<MemoryUse>& memory, float* out);

class ImagesDataset {
 public:
  // threads: 0: one for each core. memory: counts batches and images that are being decoded; may be null.
  static Result<ImagesDataset> open(const std::string& path, const ImagesOptions& options, const Asked& asked = {},
                                    std::shared_ptr<MemoryUse> memory = {}, int threads = 0);
  ImagesDataset(ImagesDataset&&) = default;
  // A defaulted one would destroy data_ while the threads of loader_ use it.
  ImagesDataset& operator=(ImagesDataset&&) = delete;

  std::uint64_t rows() const { return data_->training; }
  std::uint64_t validation_rows() const { return data_->index.size() - data_->training; }
  const ImageIndex& index() const { return data_->index; }
  const ImagesOptions& options() const { return data_->options; }
  std::uint64_t damaged() const { return data_->damaged; }  // how often an image was passed over so far
  // Row number = cursor + rank * batch + i; the cursor advances by world * batch, unless there is an error.
  Result<ImageBatch> next(std::int64_t batch, int rank = 0, int world = 1, const Look& look = {});
  // Rows first .. first + batch - 1, continuing with row 0 after the last; validation_rows() must not be 0.
  Result<ImageBatch> validation(std::uint64_t first, std::int64_t batch, const Look& look = {});

  std::uint64_t cursor() const { return cursor_; }
  std::uint64_t epoch() const { return cursor_ / data_->training; }
  Value state() const;
  Result<> restore(const Value& state);

 private:
  ImagesDataset() = default;
  struct Data {
    ImageIndex index;
    ImagesOptions options;
    Normal normal;
    std::uint64_t training = 0;
    std::shared_ptr<MemoryUse> memory;
    std::atomic<std::uint64_t> damaged{0};
    std::uint64_t image_at(bool validation, std::uint64_t place) const;
    Result<std::int32_t> make(bool validation, std::uint64_t place, float* row);
    Result<> draw(std::uint64_t image, bool validation, std::uint64_t place, float* row) const;
  };
  Value identity() const;

  std::unique_ptr<Data> data_;
  std::unique_ptr<ImageLoader> loader_;  // uses data_
  std::uint64_t cursor_ = 0;
};

}  // namespace rille::data
