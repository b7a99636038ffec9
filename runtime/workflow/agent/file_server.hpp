// FileServer: the agent's side of file transfers. It keeps no state in memory: the size of the part file
// `.NAME.part-<digest>` is a transfer's progress, so that a new agent or another channel can resume the transfer. A
// file gets its final name only when it is complete and its SHA-256 is right. Runs on the thread pool, not the loop.
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
  // Each function answers one request; a comment gives the request's fields and the reply's fields.
  Result<Reply> begin(const Value& header) const;                         // {path, size, sha256} -> {have} or {offset}
  Result<Reply> put(const Value& header, const std::string& body) const;  // {.., offset, mode} -> {offset}
  Result<Reply> get(const Value& header) const;                           // {path, offset, length} -> bytes
  Result<Reply> stat(const Value& header) const;                          // {path, digest} -> the file's description
  Result<Reply> list(const Value& header) const;                          // {path} -> {entries}
  Result<Reply> make_directory(const Value& header) const;
  // {path, below} -> {free_bytes}: of the file system that the path is on, or will be; with `below` also
  // {below_bytes}: what lies there already, unfinished transfers included.
  Result<Reply> room(const Value& header) const;
  // {path, whole}, body: FROM, TO and the paths to keep, each with a zero byte at its end. Paths before FROM, or not
  // before TO, stay; "": without that limit. whole: removes the folder itself, too.
  Result<Reply> prune(const Value& header, const std::string& body) const;
  // {path, name} -> {path}. Gives the files of a folder second names in ".held-NAME" beside it, where they stay when
  // the folder is removed; what was held under that name before goes. On a file system without hard links the reply
  // names the folder itself.
  Result<Reply> hold(const Value& header) const;
  std::string root_;
};

}  // namespace rille::agent
