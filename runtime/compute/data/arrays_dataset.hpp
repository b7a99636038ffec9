// ArraysDataset: arrays with corresponding rows (images and labels, inputs and targets), drawn in batches. The rows are
// in host memory: given bytes, or a memory-mapped safetensors file, so a set may be larger than memory. The last rows
// may be kept for validation. As in BytesDataset the order is computed from (seed, epoch), and the position is one
// number, independent of the batch size. An epoch is every training row once; a batch may extend into the next epoch.
//
// The first array may hold images [n, channels, height, width] with augmentation: padding with zeros, a random crop of
// size `crop`, and random mirroring. The augmentation of a row is computed from (seed, position), so that a resumed
// training sees the same. Validation rows are cropped at the center and not mirrored.
//
// Reading is const and any thread may do it; next() moves the cursor and belongs to one thread. Errors: invalid (no
// rows, arrays of different lengths, an array that is not images, options), state (restored for other data).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dtype.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::data {

struct Array {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;    // rows first
  std::string_view bytes;             // row-major
  std::shared_ptr<const void> owner;  // owns the bytes
};

struct ArraysOptions {
  std::uint64_t seed = 0;
  double validation = 0;  // fraction of the rows, at the end
  bool shuffle = true, flip = false;
  std::int64_t crop_height = 0, crop_width = 0, padding = 0;  // 0: unchanged
};

class ArraysDataset {
 public:
  static Result<ArraysDataset> create(std::vector<Array> arrays, const ArraysOptions& options);

  std::uint64_t rows() const { return training_; }  // training rows
  std::uint64_t validation_rows() const { return all_ - training_; }
  const std::vector<Array>& arrays() const { return arrays_; }
  const ArraysOptions& options() const { return options_; }
  // The shape of one row as drawn.
  std::vector<std::int64_t> row_shape(std::size_t array) const;
  // The next `batch` training rows of this rank: the bytes of each array. Row = cursor + rank * batch + i; the cursor
  // advances by world * batch.
  std::vector<std::vector<std::byte>> next(std::int64_t batch, int rank = 0, int world = 1);
  // Validation rows [first, first + batch), wrapping around; there must be at least one.
  std::vector<std::vector<std::byte>> validation(std::uint64_t first, std::int64_t batch) const;

  std::uint64_t cursor() const { return cursor_; }
  std::uint64_t epoch() const { return cursor_ / training_; }
  const std::string& digest() const { return digest_; }
  Value state() const;
  Result<> restore(const Value& state);

 private:
  struct Change {
    std::int64_t top = 0, left = 0;
    bool mirrored = false;
  };  // top, left: in the padded image
  Change change_of(std::uint64_t position) const;
  Change middle() const;
  void draw(std::uint64_t row, const Change& change, std::vector<std::vector<std::byte>>& into) const;
  void draw_image(std::uint64_t row, const Change& change, std::vector<std::byte>& into) const;
  Value identity() const;
  bool changes() const { return options_.flip || options_.padding || options_.crop_height || options_.crop_width; }

  std::vector<Array> arrays_;
  std::vector<std::size_t> row_bytes_;
  ArraysOptions options_;
  std::uint64_t all_ = 0, training_ = 0, cursor_ = 0;
  std::string digest_;
};

}  // namespace rille::data
