#include "runtime/workflow/transfer/store_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/core/loop/together.hpp"
#include "runtime/core/store/objects/url.hpp"
#include "runtime/workflow/transfer/stage_plan.hpp"
#include "runtime/workflow/transfer/store_files.hpp"

namespace rille::transfer {

namespace fs = std::filesystem;

namespace {

constexpr int copies_at_once = 8;

struct Pair {  // one file with one object
  std::string path, key;
};

struct Copying {
  Loop& loop;
  objects::ObjectStore& store;
  bool sends = false;
  std::vector<Pair> pairs = {};
  std::size_t next = 0;
  Copied done = {};
  std::function<void(std::int64_t, std::int64_t, std::int64_t)> moved = nullptr;
};

std::string last_name(const std::string& path) {
  std::string name = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  return name.substr(name.rfind('/') + 1);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return path.ends_with('/') || fs::is_directory(path, ignored);
}

Error needs_recursive(const std::string& what) {
  return make_error(ErrorKind::invalid, fmt::format("'{}' is not one file", what), "rille cp -r copies all of it");
}

// The prefix of a folder's objects: "" or ending in "/".
std::string as_prefix(std::string key) {
  if (!key.empty() && !key.ends_with('/')) key += '/';
  return key;
}

Result<std::vector<Pair>> pairs_to_send(const StoreCopy& copy, const std::string& key) {
  std::error_code failed;
  if (!fs::is_directory(copy.from, failed)) {
    const bool keeps_name = key.empty() || key.ends_with('/');
    return std::vector<Pair>{{copy.from, keeps_name ? key + last_name(copy.from) : key}};
  }
  if (!copy.recursive) return needs_recursive(copy.from);
  std::vector<Pair> pairs;
  fs::recursive_directory_iterator it(copy.from, failed), end;
  for (; !failed && it != end; it.increment(failed))
    if (it->is_regular_file(failed))
      pairs.push_back({it->path().string(), as_prefix(key) + fs::relative(it->path(), copy.from).generic_string()});
  if (failed) return errno_error("cannot list", copy.from, failed.value());
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.key < b.key; });
  return pairs;
}

Async<std::vector<Pair>> pairs_to_fetch(objects::ObjectStore& store, const StoreCopy& copy, std::string key,
                                        CancelToken token) {
  std::vector<Pair> pairs;
  const bool several = copy.recursive || is_pattern(key);
  if (!several && (key.empty() || key.ends_with('/'))) co_return needs_recursive(store.address(key));
  bool folder = false;
  if (several) {
    const std::string wanted = copy.recursive ? as_prefix(key) : key;
    RILLE_CO_TRY(FoundObjects found, co_await find_objects(store, wanted, false, nullptr, std::move(token)));
    folder = found.folder;
    if (folder && !copy.recursive && !is_folder(copy.to))
      co_return make_error(ErrorKind::invalid,
                           fmt::format("'{}' is no folder, and '{}' may be several objects", copy.to, key),
                           fmt::format("end it in \"/\": rille cp '{}' {}/", copy.from, copy.to));
    if (folder)
      for (const PlannedFile& file : found.files) pairs.push_back({copy.to + "/" + file.path, file.key});
  }
  if (!folder) pairs.push_back({is_folder(copy.to) ? copy.to + "/" + last_name(key) : copy.to, key});
  co_return pairs;
}

Async<> copy_pairs(std::shared_ptr<Copying> all, CancelToken token) {
  while (all->next < all->pairs.size()) {
    if (token.cancelled()) co_return token.reason();
    const Pair pair = all->pairs[all->next++];
    Result<StoreFile> made = StoreFile();
    if (all->sends)
      made = co_await send_file(all->store, all->loop, pair.path, pair.key, objects::PutRequest(), nullptr, token);
    else made = co_await fetch_file(all->store, all->loop, pair.key, pair.path, nullptr, nullptr, token);
    if (!made) co_return std::move(made).error();
    ++all->done.files;
    all->done.bytes += made->size_bytes;
    if (all->moved) all->moved(all->done.files, all->done.bytes, static_cast<std::int64_t>(all->pairs.size()));
  }
  co_return success();
}

}  // namespace

Async<Copied> copy_with_store(Loop& loop, StoreCopy copy, CancelToken token) {
  const bool sends = objects::is_object_url(copy.to), fetches = objects::is_object_url(copy.from);
  if (sends == fetches)
    co_return make_error(ErrorKind::invalid,
                         sends ? fmt::format("'{}' and '{}' are both addresses in stores", copy.from, copy.to)
                               : fmt::format("neither '{}' nor '{}' is an address in a store", copy.from, copy.to),
                         "rille cp model.bin s3://bucket/model.bin; between two stores copy by way of a file");
  RILLE_CO_TRY(const objects::ObjectUrl url, objects::parse_object_url(sends ? copy.to : copy.from));
  RILLE_CO_TRY(const std::unique_ptr<objects::ObjectStore> store, open_users_store(url, loop, nullptr));
  const auto all = std::make_shared<Copying>(Copying{loop, *store, sends});
  all->moved = copy.moved;
  if (sends) {
    RILLE_CO_TRY(all->pairs, pairs_to_send(copy, url.key));
  } else {
    RILLE_CO_TRY(all->pairs, co_await pairs_to_fetch(*store, copy, url.key, token));
  }
  CancelSource working(token);
  std::vector<Together<void>> workers;
  for (int i = 0; i < copies_at_once; ++i)
    workers.push_back({"a file", [all, &working](CancelToken t) -> Async<> {
                         Result<> done = co_await copy_pairs(all, std::move(t));
                         if (!done) working.cancel(done.error());  // the others need not go on
                         co_return done;
                       }});
  const CancelToken stop = working.token();
  const std::vector<Result<>> ends = co_await together(loop, std::move(workers), 0, stop);
  if (working.cancelled()) co_return stop.reason();
  co_return all->done;
}

}  // namespace rille::transfer
