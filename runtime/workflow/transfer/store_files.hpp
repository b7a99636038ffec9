// Files and object stores: sends a whole file to a store, in parts at the same time if it is large, and fetches an
// object into a file, which appears when it is complete. Errors: those of the store; io; integrity if a file changes
// while it is sent. Loop thread; the file is read there in pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/core/base/use.hpp"
#include "runtime/core/store/objects/object_store.hpp"

namespace rille::transfer {

using MayConnect = std::function<Result<>(const std::string& host, const std::string& port)>;
// Opens a store with the user's settings (providers_file() of base/places.hpp).
Result<std::unique_ptr<objects::ObjectStore>> open_users_store(const objects::ObjectUrl& url, Loop& loop,
                                                               MayConnect may_connect);

struct StoreFile {
  std::int64_t size_bytes = 0;
  std::string version;
};
using Moved = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;  // may be null

// The store must outlive the task.
Async<StoreFile> send_file(objects::ObjectStore& store, Loop& loop, std::string path, std::string key,
                           objects::PutRequest request, Moved moved, CancelToken token);
// Makes an object of parts that `put` sends, several at the same time, and returns its version. An upload that fails is
// removed.
using PutPart = std::function<Async<objects::Part>(std::string upload, int number, std::int64_t from,
                                                   std::int64_t bytes, CancelToken)>;
Async<std::string> send_in_parts(objects::ObjectStore& store, Loop& loop, std::string key, std::int64_t size_bytes,
                                 objects::PutRequest request, PutPart put, CancelToken token);
// `path`: the file to make; its missing parents are made, too. `room`: asked before each write; may be null.
Async<StoreFile> fetch_file(objects::ObjectStore& store, Loop& loop, std::string key, std::string path, Room room,
                            Moved moved, CancelToken token);

}  // namespace rille::transfer
