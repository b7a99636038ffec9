// How a checkpoint's files travel between an object store and a machine: this one, with the keys, or a rented one, at
// signed addresses.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"
#include "runtime/workflow/transfer/store_files.hpp"
#include "runtime/workflow/transfer/stored_checkpoints.hpp"

namespace rille::transfer {

namespace {

constexpr int part_attempts_max = 3;

agent::PullAddress address_of(objects::Presigned signed_for) {
  agent::PullAddress out;
  out.url = std::move(signed_for.url);
  out.headers = std::move(signed_for.headers);
  out.expires_wall_us = signed_for.expires_wall_us;
  return out;
}

struct Pushing {
  objects::ObjectStore& store;
  std::shared_ptr<agent::AgentClient> agent;
  std::string path, key;
};

// A part is tried again with an address that is signed anew, since the one before may have expired on the way.
Async<objects::Part> push_part(std::shared_ptr<Pushing> file, std::string upload, int number, std::int64_t from,
                               std::int64_t bytes, CancelToken token) {
  for (int attempt = 1;; ++attempt) {
    objects::PresignRequest wanted;
    wanted.method = objects::Method::put;
    wanted.key = file->key;
    wanted.upload = upload;
    wanted.part = number;
    RILLE_CO_TRY(objects::Presigned address, co_await file->store.presign(wanted, token));
    agent::PushRequest request;
    request.path = file->path;
    request.offset = from;
    request.size_bytes = bytes;
    request.to = address_of(std::move(address));
    Result<agent::Pushed> pushed = co_await file->agent->push(std::move(request), token);
    if (pushed) co_return objects::Part{number, std::move(pushed->mark), bytes};
    const Error& e = pushed.error();
    const bool again = e.kind == ErrorKind::network || e.kind == ErrorKind::timeout || e.kind == ErrorKind::auth;
    if (!again || attempt >= part_attempts_max || token.cancelled() || file->agent->broken())
      co_return std::move(pushed).error();
  }
}

Async<agent::PullAddress> get_address(objects::ObjectStore& store, std::string key, CancelToken token) {
  objects::PresignRequest wanted;
  wanted.key = std::move(key);
  RILLE_CO_TRY(objects::Presigned made, co_await store.presign(wanted, std::move(token)));
  co_return address_of(std::move(made));
}

Result<> check_digest(const StoredFile& file, const store::Fingerprint& found) {
  if (found.sha256 == file.sha256) return success();
  return make_error(ErrorKind::integrity, fmt::format("'{}' has the SHA-256 {} where latest.json says {}", file.name,
                                                      found.sha256, file.sha256));
}

}  // namespace

Result<std::vector<StoredFile>> files_here(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<StoredFile> out, manifest;
  std::error_code failed;
  for (fs::directory_iterator it(directory, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().string();
    if (!it->is_regular_file(failed) || !is_stored_file_name(name)) continue;
    RILLE_TRY(const store::Fingerprint print, store::fingerprint_file(it->path().string(), true));
    (name == manifest_name ? manifest : out).push_back({name, print.size_bytes, print.sha256});
  }
  if (failed) return errno_error("cannot list", directory, failed.value());
  if (manifest.empty()) return errno_error("cannot find", directory + "/" + manifest_name, ENOENT);
  out.push_back(std::move(manifest.front()));
  return out;
}

Async<> send_here(StoredCheckpoints& stored, std::string path, std::string key, CancelToken token) {
  const objects::PutRequest request;
  RILLE_CO_CHECK(co_await send_file(stored.store(), stored.loop(), std::move(path), std::move(key), request, nullptr,
                                    std::move(token)));
  co_return success();
}

Async<> take_file(StoredCheckpoints& stored, StoredCheckpoint from, StoredFile file, std::string folder, Room room,
                  CancelToken token) {
  const std::string path = folder + "/" + file.name;
  RILLE_CO_TRY(const StoreFile got, co_await fetch_file(stored.store(), stored.loop(), stored.key(from, file), path,
                                                        std::move(room), nullptr, std::move(token)));
  const std::function<Result<store::Fingerprint>()> hash = [path] { return store::fingerprint_file(path, true); };
  RILLE_CO_TRY(const store::Fingerprint found, co_await thread_job(stored.loop(), hash));
  co_return check_digest(file, found);
}

Async<> verify_file(StoredCheckpoints& stored, StoredCheckpoint from, StoredFile file, std::string version,
                    CancelToken token) {
  store::Hasher hasher(true);
  const objects::Sink sink = [&hasher](std::string_view piece) -> Result<> {
    hasher.update(piece);
    return success();
  };
  objects::GetRequest all;
  all.if_match = std::move(version);
  std::string key = stored.key(from, file);
  RILLE_CO_CHECK(co_await stored.store().get(std::move(key), all, sink, std::move(token)));
  co_return check_digest(file, hasher.finish());
}

Async<> push_file(StoredCheckpoints& stored, std::shared_ptr<agent::AgentClient> agent, std::string path,
                  StoredFile file, std::string key, CancelToken token) {
  const auto pushing = std::make_shared<Pushing>(Pushing{stored.store(), std::move(agent), std::move(path), key});
  const PutPart put = [pushing](std::string upload, int number, std::int64_t from, std::int64_t bytes, CancelToken t) {
    return push_part(pushing, std::move(upload), number, from, bytes, std::move(t));
  };
  const objects::PutRequest request;
  if (file.size_bytes == 0) {  // an upload needs a part, and a part needs bytes
    objects::Body nothing;
    RILLE_CO_CHECK(co_await stored.store().put(key, std::move(nothing), request, token));
    co_return success();
  }
  RILLE_CO_CHECK(co_await send_in_parts(stored.store(), stored.loop(), key, file.size_bytes, request, put, token));
  // Ask the store for the size, since the machine may lie: a signed address accepts any number of bytes.
  RILLE_CO_TRY(const objects::ObjectInfo made, co_await stored.store().head(std::move(key), std::move(token)));
  if (made.size_bytes == file.size_bytes) co_return success();
  co_return make_error(ErrorKind::integrity, fmt::format("the machine sent {} bytes of '{}', which has {}",
                                                         made.size_bytes, file.name, file.size_bytes));
}

Async<> pull_file(StoredCheckpoints& stored, std::shared_ptr<agent::AgentClient> agent, std::string path,
                  StoredFile file, std::string key, std::string version, CancelToken token) {
  agent::PullRequest request;
  request.path = std::move(path);
  request.key = sha256_hex(stored.store().address(key));
  request.size_bytes = file.size_bytes;
  request.version = std::move(version);
  request.sha256 = file.sha256;
  const agent::PullSign sign = [&stored, key](CancelToken t) { return get_address(stored.store(), key, std::move(t)); };
  RILLE_CO_CHECK(co_await agent->pull(std::move(request), sign, nullptr, std::move(token)));
  co_return success();
}

Async<std::vector<StoredFile>> files_there(std::shared_ptr<agent::AgentClient> agent, std::string directory,
                                           CancelToken token) {
  RILLE_CO_TRY(const std::vector<agent::FileInfo> found, co_await agent->list(directory, token));
  std::vector<StoredFile> out;
  for (const agent::FileInfo& one : found) {
    if (one.directory || !is_stored_file_name(one.path)) continue;
    const std::string path = directory + "/" + one.path;
    RILLE_CO_TRY(const agent::FileInfo file, co_await agent->stat(path, true, token));
    if (out.size() >= stored_files_max || file.sha256.size() != 64)
      co_return make_error(ErrorKind::integrity, fmt::format("'{}' is not a checkpoint: it has more than {} files, or "
                                                             "one without a SHA-256",
                                                             directory, stored_files_max));
    out.push_back({one.path, file.size_bytes, file.sha256});
  }
  const auto last = std::find_if(out.begin(), out.end(), [](const auto& f) { return f.name == manifest_name; });
  if (last == out.end())
    co_return make_error(ErrorKind::integrity, fmt::format("'{}' has no {}", directory, manifest_name),
                         "the call removed this checkpoint, or did not write it with rille.checkpoint");
  std::rotate(last, last + 1, out.end());
  co_return out;
}

}  // namespace rille::transfer
