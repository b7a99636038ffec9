// safetensors: u64 little-endian N, N bytes of JSON, then the tensors' bytes without gaps (format of
// huggingface/safetensors at 24b0b28). Files written here pad the header with spaces so that the data starts at a
// multiple of 4096, which suits mmap and direct I/O; files from other writers need not. Dtypes are the format's names
// ("F32", "BF16"); tensor/ maps its types to them. Little-endian, row-major. Opening maps the file and validates the
// header; the digests in a checkpoint's manifest check the data.
// Errors: `io`; `integrity`, naming the file and the fault; `invalid` for a list of tensors that the format forbids.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"

namespace rille::store {

// Bits of one element; 0 if the format has no such dtype.
int dtype_bits(std::string_view dtype);
// Size of a tensor in bytes. Error `invalid`: unknown dtype, negative dimension, overflow, or not a whole number of
// bytes.
Result<std::uint64_t> tensor_bytes(std::string_view dtype, const std::vector<std::int64_t>& shape);

using StringMap = std::map<std::string, std::string>;

// A tensor to write. The bytes are at `data`; if `data` is null, `read` is called for consecutive pieces of the bytes.
struct TensorSource {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
  std::function<Result<>(std::uint64_t offset, char* out, std::size_t size)> read;
};

// Writes the file atomically and returns its fingerprint, computed while writing.
Result<Fingerprint> write_safetensors(const std::string& path, const std::vector<TensorSource>& tensors,
                                      const StringMap& metadata = {}, bool with_sha256 = false);

struct TensorEntry {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // byte range, counted from data_offset
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their bytes in the file
  StringMap metadata;
  std::uint64_t data_offset = 0;  // where the tensors' bytes begin, counted from the start of the file
};

// Checks the header and that the tensors fill the file, without reading the tensors' bytes. `shown` names the file in
// messages.
Result<SafetensorsHeader> parse_safetensors(std::string_view file, std::string_view shown);

class SafetensorsFile {
 public:
  // `room` is asked for the memory of the parsed header before the header is read.
  static Result<SafetensorsFile> open(const std::string& path,
                                      const std::function<Result<>(std::int64_t bytes)>& room = {});
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  const StringMap& metadata() const { return header_.metadata; }
  const TensorEntry* find(std::string_view name) const;  // nullptr if the file has no such tensor
  // The bytes of one of this file's entries, valid as long as this SafetensorsFile.
  std::string_view bytes(const TensorEntry& entry) const;
  std::string_view file_bytes() const { return map_.view(); }
  std::uint64_t data_offset() const { return header_.data_offset; }

 private:
  MappedFile map_;
  SafetensorsHeader header_;
};

}  // namespace rille::store
