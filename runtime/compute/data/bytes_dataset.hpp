// BytesDataset: text as a sequence of bytes, or files of token ids, cut into windows for next-byte (next-token)
// prediction. The bytes are a memory-mapped file, or a directory's visible files, at any depth, concatenated in sorted
// order and read into memory; token ids are in any number of memory-mapped files (token_files.hpp), concatenated.
// Window sizes count elements: bytes or ids. The first part of the data is for training, the rest for validation. A
// sample is a window of `context` elements (x) and the window one element later (y). One epoch covers the training part
// once (except for less than two windows); with shuffle every epoch cuts the data at another offset and takes the
// windows in another order. The order is a counter-based permutation keyed by (seed, epoch), so that the position is
// one number, the global sample cursor: it does not depend on the batch size or the number of workers, and sample i is
// equal everywhere. Reading is const and any thread may do it; next_batch moves the cursor, so only one thread may call
// it. Errors: io (missing or unreadable), invalid (too short, empty directory, bad option), state (the saved state is
// from other data). Long loops call `look` regularly (pace.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compute/data/pace.hpp"
#include "runtime/compute/data/permutation.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::data {

struct BytesOptions {
  std::int64_t context = 128;
  std::uint64_t seed = 0;
  double validation = 0.1;  // fraction of the elements, taken from the end; 0: no validation part
  bool shuffle = true;
};

enum class Split { train, validation };

class TokenFile;

class BytesDataset {
 public:
  // `room` is asked for the size of a directory's files before they are read into memory.
  static Result<BytesDataset> open(const std::string& path, const BytesOptions& options, const Look& look = {},
                                   const Room& room = {});
  // Opens token files, concatenated in the given order. With separate validation files, options.validation is
  // ignored.
  static Result<BytesDataset> open_tokens(std::vector<TokenFile> training, std::vector<TokenFile> validation,
                                          const BytesOptions& options, const Look& look = {});
  BytesDataset(BytesDataset&&) noexcept;
  BytesDataset& operator=(BytesDataset&&) noexcept;
  ~BytesDataset();

  const BytesOptions& options() const;
  std::string_view bytes(Split split) const;  // valid while this object lives; empty for tokens
  std::uint64_t elements(Split split) const;  // number of bytes or token ids in the part
  bool is_tokens() const;
  Result<> check_files() const;              // io: a file was truncated, so that reading it would end the process
  std::uint64_t windows(Split split) const;  // number of samples in one epoch; 0: the part is too short
  // identifies the data: XXH3 of the size and the bytes (above 256 MiB, of samples of the bytes)
  const std::string& digest() const;

  // Returns sample i of the endless sequence: x and y have `context` bytes each. Validation samples have one fixed
  // shuffled order, so that the first few already represent the whole. Requires windows(split) > 0 and a set of
  // bytes.
  struct Sample {
    const std::uint8_t* x;
    const std::uint8_t* y;
    std::uint64_t epoch;
  };
  Sample sample(Split split, std::uint64_t i) const;

  // Copies the next `batch` training samples of this rank into caller memory, batch * context elements for x and for
  // y, as uint8 (bytes only) or int32. Sample number = cursor + rank * batch + row; the cursor advances by world *
  // batch.
  template <class T>
  void next_batch(std::int64_t batch, T* out_x, T* out_y, int rank = 0, int world = 1, const Look& look = {});
  // Copies validation samples first .. first + batch - 1, continuing with sample 0 after the last.
  template <class T>
  void validation_batch(std::uint64_t first, std::int64_t batch, T* out_x, T* out_y, const Look& look = {}) const;

  std::uint64_t cursor() const;
  void seek(std::uint64_t cursor);
  std::uint64_t epoch() const;  // how many times the cursor has passed through all training windows

  // For checkpoints. restore fails (state) if digest, context, seed, split or shuffle differs; the error names which.
  Value state() const;
  Result<> restore(const Value& state);

 private:
  struct Data;
  explicit BytesDataset(std::unique_ptr<Data> data);
  std::uint64_t start_of(Split split, std::uint64_t i) const;
  template <class T>
  void copy_sample(Split split, std::uint64_t i, T* x, T* y, Pace& pace) const;
  std::unique_ptr<Data> data_;
};

extern template void BytesDataset::next_batch(std::int64_t, std::uint8_t*, std::uint8_t*, int, int, const Look&);
extern template void BytesDataset::next_batch(std::int64_t, std::int32_t*, std::int32_t*, int, int, const Look&);
extern template void BytesDataset::validation_batch(std::uint64_t, std::int64_t, std::uint8_t*, std::uint8_t*,
                                                    const Look&) const;
extern template void BytesDataset::validation_batch(std::uint64_t, std::int64_t, std::int32_t*, std::int32_t*,
                                                    const Look&) const;

// A baseline for byte models: the mean of -log p(next byte | byte) over `validation`, in nats per byte. p is counted
// on `training`; `add` is added to each count. invalid: `training` or `validation` has fewer than two bytes.
Result<double> bigram_nats_per_byte(std::string_view training, std::string_view validation, double add = 0.5,
                                    const Look& look = {});

}  // namespace rille::data
