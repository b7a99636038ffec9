// ArraysDataset: arrays with corresponding rows (images and labels, inputs and targets), drawn in batches. The rows
// are given as bytes in memory or as a memory-mapped safetensors file, so a set may be larger than memory. The last
// rows may be kept for validation. As in BytesDataset the order is computed from (seed, epoch), and the position is
// one number, independent of the batch size. An epoch draws every training row once; a batch may extend into the next
// epoch.
//
// The first array may hold images [n, channels, height, width] with augmentation: padding with zeros, a random crop
// to crop_height x crop_width, and random mirroring. A row's augmentation is computed from (seed, position), so that
// a resumed training sees the same images. Validation rows are cropped at the center and not mirrored.
//
// Reading is const and any thread may do it; next() moves the cursor, so only one thread may call it. Errors: invalid
// (no rows, arrays of different lengths, an array that is not images, bad options), state (the saved state is from
// other data). Long loops call `look` regularly (pace.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dtype.hpp"
#include "runtime/compute/data/pace.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::data {

struct Array {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;    // the first dimension counts rows
  std::string_view bytes;             // the elements in row-major order
  std::shared_ptr<const void> owner;  // keeps the memory of `bytes` alive
};

struct ArraysOptions {
  std::uint64_t seed = 0;
  double validation = 0;  // fraction of the rows, taken from the end
  bool shuffle = true, flip = false;
  std::int64_t crop_height = 0, crop_width = 0, padding = 0;  // in pixels; crop 0: no crop; padding 0: none
};

class ArraysDataset {
 public:
  static Result<ArraysDataset> create(std::vector<Array> arrays, const ArraysOptions& options, const Look& look = {});

  std::uint64_t rows() const { return training_; }  // training rows
  std::uint64_t validation_rows() const { return all_ - training_; }
  const std::vector<Array>& arrays() const { return arrays_; }
  const ArraysOptions& options() const { return options_; }
  // The shape of one row of array number `array`, after cropping.
  std::vector<std::int64_t> row_shape(std::size_t array) const;
  // Returns the next `batch` training rows of this rank: one byte string per array. Row number = cursor + rank *
  // batch + i; the cursor advances by world * batch.
  std::vector<std::vector<std::byte>> next(std::int64_t batch, int rank = 0, int world = 1, const Look& look = {});
  // Returns validation rows first .. first + batch - 1, continuing with row 0 after the last; validation_rows() must
  // not be 0.
  std::vector<std::vector<std::byte>> validation(std::uint64_t first, std::int64_t batch, const Look& look = {}) const;

  std::uint64_t cursor() const { return cursor_; }
  std::uint64_t epoch() const { return cursor_ / training_; }
  const std::string& digest() const { return digest_; }
  Value state() const;
  Result<> restore(const Value& state);

 private:
  struct Change {
    std::int64_t top = 0, left = 0;
    bool mirrored = false;
  };  // top, left: the crop's corner in the padded image
  Change change_of(std::uint64_t position) const;
  Change middle() const;
  std::vector<std::vector<std::byte>> room_for(std::int64_t batch) const;
  void draw(std::uint64_t row, const Change& change, std::vector<std::vector<std::byte>>& into, Pace& pace) const;
  void draw_image(std::uint64_t row, const Change& change, std::vector<std::byte>& into, Pace& pace) const;
  Value identity() const;
  bool changes() const { return options_.flip || options_.padding || options_.crop_height || options_.crop_width; }

  std::vector<Array> arrays_;
  std::vector<std::size_t> row_bytes_;
  ArraysOptions options_;
  std::uint64_t all_ = 0, training_ = 0, cursor_ = 0;
  std::string digest_;
};

}  // namespace rille::data
