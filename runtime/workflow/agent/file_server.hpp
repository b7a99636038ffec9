// The agent's side of file transfers. Operations are stateless: a transfer's progress is the size of its part file
// `.NAME.part-<digest>`, so that a new agent or another channel can resume it. A file appears under its name only when
// it is complete and its SHA-256 is right. Runs on the thread pool: no function here touches the loop.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"

namespace rille::agent {

struct Reply {
  Value value;
  std::string body;
};

class FileServer {
 public:
  static constexpr std::size_t list_entries_max = 100'000;

  explicit FileServer(std::string root) : root_(std::move(root)) {}
  static bool handles(const std::string& op);
  Result<Reply> handle(const std::string& op, const Value& header, const std::string& body) const;

 private:
  Result<Reply> begin(const Value& header) const;                         // {path, size, sha256} -> {have} or {offset}
  Result<Reply> put(const Value& header, const std::string& body) const;  // {.., offset, mode} -> {offset}
  Result<Reply> get(const Value& header) const;                           // {path, offset, length} -> bytes
  Result<Reply> stat(const Value& header) const;                          // {path, digest}
  Result<Reply> list(const Value& header) const;                          // {path} -> {entries}
  Result<Reply> make_directory(const Value& header) const;
  std::string root_;
};

}  // namespace rille::agent
