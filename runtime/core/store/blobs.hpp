// Large values beside the journal: <root>/ab/<sha256>, each named by the hash of its content. put returns after the
// value and its directory entries are on disk, so that a row of the journal may refer to it; get checks the bytes
// against the name. Any thread; the calls block.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::store {

constexpr std::size_t inline_bytes_max = 64 << 10;  // the journal stores larger values as blobs
constexpr std::size_t blob_bytes_max = 64 << 20;

class Blobs {
 public:
  explicit Blobs(std::string root) : root_(std::move(root)) {}
  // Stores the bytes and returns their SHA-256, the blob's name. Error `io`: the disk is full or cannot be written.
  Result<std::string> put(std::string_view bytes) const;
  // Error `integrity`: the file is missing or its content does not match its name; the message names the file.
  Result<std::string> get(const std::string& sha256) const;
  std::string path(const std::string& sha256) const;
  // Removes each value for which `wanted` returns false, and files left by a killed put. No put may run meanwhile.
  Result<> sweep(const std::function<Result<bool>(const std::string& sha256)>& wanted) const;

 private:
  std::string root_;
};

}  // namespace rille::store
