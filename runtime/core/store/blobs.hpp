// Large values beside the journal: <root>/ab/<sha256>, each named by its content. A value and the names that lead to it
// are on the disk before put returns, so that a row which refers to it can follow; what is read is checked against its
// name. Any thread; the calls block.
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
  // The name. io: the disk is full, or cannot be written.
  Result<std::string> put(std::string_view bytes) const;
  // integrity: the file is missing or not what its name says; the message names it.
  Result<std::string> get(const std::string& sha256) const;
  std::string path(const std::string& sha256) const;
  // Removes what is not wanted, and what a killed put has left. For a caller whom nothing can put beside.
  Result<> sweep(const std::function<Result<bool>(const std::string& sha256)>& wanted) const;

 private:
  std::string root_;
};

}  // namespace rille::store
