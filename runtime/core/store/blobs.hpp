// Large values beside the journal: <root>/ab/<sha256>, each named by its content. put returns after the value and its
// directory entries are on disk, so that a row may refer to it; get checks the bytes against the name. Any thread; the
// calls block.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::store {

constexpr std::size_t inline_bytes_max = 64 << 10;  // larger values are blobs
constexpr std::size_t blob_bytes_max = 64 << 20;

class Blobs {
 public:
  explicit Blobs(std::string root) : root_(std::move(root)) {}
  // Returns the name. io: the disk is full, or cannot be written.
  Result<std::string> put(std::string_view bytes) const;
  // integrity: the file is missing or does not match its name; the message names it.
  Result<std::string> get(const std::string& sha256) const;
  std::string path(const std::string& sha256) const;
  // Removes unwanted values and leftovers of a killed put. No put may run meanwhile.
  Result<> sweep(const std::function<Result<bool>(const std::string& sha256)>& wanted) const;

 private:
  std::string root_;
};

}  // namespace rille::store
