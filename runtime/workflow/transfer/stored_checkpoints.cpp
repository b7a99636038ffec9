#include "runtime/workflow/transfer/stored_checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runtime/core/base/id.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/core/store/objects/url.hpp"
#include "runtime/workflow/transfer/store_files.hpp"

namespace rille::transfer {

namespace {

constexpr const char* latest_name = "latest.json";
constexpr std::size_t files_at_once = 8;
constexpr int publish_attempts_max = 20;  // each one lost to another writer
constexpr int sweep_pages_max = 10;       // of one folder; the rest is removed after a later checkpoint

std::tuple<std::int64_t, std::int64_t> order(const StoredCheckpoint& c) { return {c.generation, c.epoch}; }

bool is_damage(const Error& e) { return e.kind == ErrorKind::integrity || objects::is_missing(e); }

// The folder's mark: another writer or other contents give another one, and the same attempt again the same.
std::string mark_of(const StoredCheckpoint& c, const std::string& writer) {
  std::string all = fmt::format("{} {} {} {}", c.step, c.generation, c.epoch, writer);
  for (const StoredFile& f : c.files) all += fmt::format("\n{} {}", f.name, f.sha256);
  return sha256_hex(all).substr(0, 8);
}

// Where the files of these checkpoints are, below the training's address.
std::map<std::string, StoredFile> files_of(const Latest& latest) {
  std::map<std::string, StoredFile> out;
  for (const StoredCheckpoint& c : latest.checkpoints)
    for (const StoredFile& f : c.files) out.emplace(f.at.empty() ? c.folder + f.name : f.at, f);
  return out;
}

constexpr const char* reference_gone = "reference_gone";

// Only keys below the prefix are removed, whatever the store lists.
Error wrongly_listed(std::string_view key, std::string_view prefix) {
  return make_error(ErrorKind::integrity, fmt::format("the store lists '{}' below '{}'", key.substr(0, 1024), prefix),
                    "no store should answer so: check its endpoint");
}

}  // namespace

Async<Latest> StoredCheckpoints::read(CancelToken token) {
  std::string text;
  const objects::Sink sink = [&text, this](std::string_view piece) -> Result<> {
    if (static_cast<std::int64_t>(text.size() + piece.size()) > latest_bytes_max)
      return make_error(ErrorKind::integrity,
                        fmt::format("'{}' is larger than {} bytes", address(latest_name), latest_bytes_max),
                        "it is not a list of checkpoints: use another address");
    text += piece;
    return success();
  };
  const objects::GetRequest all;
  Result<objects::ObjectInfo> got = co_await store_->get(prefix_ + latest_name, all, sink, std::move(token));
  Latest out;
  if (got) {
    RILLE_CO_TRY(out, read_latest(text, address(latest_name)));
    out.version = got->version;
  } else if (!objects::is_missing(got.error()) || got.error().code == "NoSuchBucket" ||
             got.error().code == "ContainerNotFound") {
    co_return std::move(got).error();
  }
  if (!base_) follow(out);
  co_return out;
}

void StoredCheckpoints::follow(const Latest& latest) {
  base_ = latest.base;
  if (!latest.checkpoints.empty() && latest.writer != writer_) base_ = latest.checkpoints.front().generation;
}

bool StoredCheckpoints::made_by(const Latest& latest, std::int64_t generation) const {
  return !latest.checkpoints.empty() && latest.writer == writer_ &&
         latest.checkpoints.front().generation == base_.value_or(0) + generation;
}

Result<> StoredCheckpoints::may_follow(const Latest& before, std::int64_t generation) const {
  if (before.checkpoints.empty()) return success();
  const StoredCheckpoint& newest = before.checkpoints.front();
  const std::tuple<std::int64_t, std::int64_t> mine(generation, epoch_);
  if (before.writer == writer_ ? order(newest) <= mine : order(newest) < mine) return success();
  return make_error(ErrorKind::state,
                    fmt::format("cannot publish a checkpoint of generation {}, epoch {} at {}: step {} there is of "
                                "generation {}, epoch {}",
                                generation, epoch_, address(), newest.step, newest.generation, newest.epoch),
                    "a newer machine or run has taken over this training: end this one, or give it another address");
}

Async<StoredCheckpoint> StoredCheckpoints::add(StoredCheckpoint made, StoreRetention rule, Send send,
                                               CancelToken token) {
  RILLE_CO_TRY(const Latest before, co_await read(token));
  made.generation += *base_;
  made.epoch = epoch_;
  RILLE_CO_CHECK(may_follow(before, made.generation));
  made.folder = stored_folder(made, mark_of(made, writer_));
  Latest alone;
  alone.writer = writer_;
  alone.checkpoints = {made};
  RILLE_CO_CHECK(text_of_latest(alone, address(latest_name)));  // before its files are sent in vain
  RILLE_CO_CHECK(co_await refer(made, before, token));
  RILLE_CO_CHECK(co_await send_all(made, send, token));
  Result<Latest> now = co_await publish(made, rule, token);
  if (!now && now.error().code == reference_gone) {
    for (StoredFile& file : made.files) file.at.clear();
    RILLE_CO_CHECK(co_await send_all(made, send, token));
    now = co_await publish(made, rule, token);
  }
  if (!now) co_return std::move(now).error();
  // What cannot be removed now is removed after a later checkpoint.
  (void)co_await sweep(std::move(*now), rule, std::move(token));
  co_return made;
}

// Looks which files the checkpoints there have already.
Async<> StoredCheckpoints::refer(StoredCheckpoint& made, const Latest& before, CancelToken token) {
  const std::map<std::string, StoredFile> there = files_of(before);
  for (StoredFile& file : made.files) {
    const auto same = std::find_if(there.begin(), there.end(), [&](const auto& one) {
      return one.second.sha256 == file.sha256 && one.second.size_bytes == file.size_bytes;
    });
    if (same == there.end() || same->first.starts_with(made.folder)) continue;
    const Result<objects::ObjectInfo> info = co_await store_->head(prefix_ + same->first, token);
    if (!info && !objects::is_missing(info.error())) co_return info.error();
    if (info && info->size_bytes == file.size_bytes) file.at = same->first;
  }
  co_return success();
}

Async<> StoredCheckpoints::send_all(const StoredCheckpoint& made, const Send& send, CancelToken token) {
  CancelSource working(token);
  std::size_t next = 0;
  const std::size_t count = made.files.size() - 1;  // the manifest is the last one, and goes after them
  std::vector<Together<void>> workers;
  for (std::size_t i = 0; i < std::min(files_at_once, count); ++i)
    workers.push_back({"a file", [&](CancelToken t) -> Async<> {
                         Result<> done = co_await send_next(made, send, next, count, std::move(t));
                         if (!done) working.cancel(done.error());  // the others need not go on
                         co_return done;
                       }});
  const CancelToken stop = working.token();
  std::vector<Result<>> sent = co_await together(loop_, std::move(workers), 0, stop);
  if (working.cancelled()) co_return stop.reason();
  for (Result<>& one : sent) RILLE_CO_CHECK(std::move(one));
  const StoredFile& manifest = made.files.back();
  if (!manifest.at.empty()) co_return success();
  std::string to = key(made, manifest);
  co_return co_await send(manifest, std::move(to), std::move(token));
}

// Sends files until none is left; several such workers share them.
Async<> StoredCheckpoints::send_next(const StoredCheckpoint& made, const Send& send, std::size_t& next,
                                     std::size_t count, CancelToken token) {
  while (next < count) {
    if (token.cancelled()) co_return token.reason();
    const StoredFile& file = made.files[next++];
    if (!file.at.empty()) continue;
    std::string to = key(made, file);
    RILLE_CO_CHECK(co_await send(file, std::move(to), token));
  }
  co_return success();
}

Async<Latest> StoredCheckpoints::publish(StoredCheckpoint made, StoreRetention rule, CancelToken token) {
  const objects::Traits traits = store_->traits();
  Error last;
  for (int attempt = 0; attempt < publish_attempts_max; ++attempt) {
    RILLE_CO_TRY(Latest now, co_await read(token));
    // An attempt whose answer was lost has published it.
    const bool done = !now.checkpoints.empty() && now.checkpoints.front().folder == made.folder;
    if (done) co_return now;
    if (attempt > 0 && !objects::is_refused(last)) co_return last;
    RILLE_CO_CHECK(may_follow(now, made.generation));
    // Another writer may have published meanwhile, and removed what it no longer names.
    const std::map<std::string, StoredFile> there = files_of(now);
    for (const StoredFile& file : made.files)
      if (!file.at.empty() && !there.contains(file.at)) {
        Error gone = make_error(ErrorKind::state, fmt::format("'{}' is no longer there", address(file.at)));
        gone.code = reference_gone;
        co_return gone;
      }
    objects::PutRequest request;
    request.content_type = "application/json";
    request.if_absent = now.version.empty() && traits.puts_if_absent;
    if (traits.puts_if_match) request.if_match = now.version;
    std::erase_if(now.checkpoints, [&](const StoredCheckpoint& c) { return c.folder == made.folder; });
    now.checkpoints.insert(now.checkpoints.begin(), made);
    retain(now.checkpoints, rule);
    now.writer = writer_;
    now.base = *base_;
    objects::Body body;
    RILLE_CO_TRY(body.text, text_of_latest(now, address(latest_name)));
    Result<std::string> put = co_await store_->put(prefix_ + latest_name, std::move(body), request, token);
    if (put) {
      now.version = std::move(*put);
      co_return now;
    }
    if (token.cancelled()) co_return std::move(put).error();
    last = put.error();
  }
  co_return last;
}

// Removes the folders of this and older writers that latest.json does not name.
Async<> StoredCheckpoints::sweep(Latest now, StoreRetention rule, CancelToken token) {
  std::set<std::string> named, kept_files;
  for (const StoredCheckpoint& c : now.checkpoints) {
    named.insert(c.folder);
    for (const StoredFile& f : c.files) kept_files.insert(key(c, f));
  }
  const auto mine = order(now.checkpoints.front());
  std::vector<std::string> unnamed;
  objects::ListRequest request;
  request.prefix = prefix_ + "step-";
  request.delimiter = "/";
  const std::function<Result<>(const objects::ListPage&)> folders = [&](const objects::ListPage& page) -> Result<> {
    for (const std::string& folder : page.prefixes) {
      if (!folder.starts_with(prefix_)) return wrongly_listed(folder, prefix_);
      Result<StoredCheckpoint> one = parse_stored_folder(folder.substr(prefix_.size()));
      const bool kept =
          !one || named.count(one->folder) || order(*one) > mine || (rule.every > 0 && one->step % rule.every == 0);
      if (!kept && unnamed.size() < stored_checkpoints_max) unnamed.push_back(folder);
    }
    return success();
  };
  RILLE_CO_CHECK(co_await objects::list_all(*store_, request, folders, token));
  for (const std::string& folder : unnamed) RILLE_CO_CHECK(co_await remove_folder(folder, kept_files, token));
  co_return success();
}

// All but the files `kept`. Page by page, so that a folder of any size takes the memory of one page.
Async<> StoredCheckpoints::remove_folder(std::string folder, const std::set<std::string>& kept, CancelToken token) {
  objects::ListRequest request;
  request.prefix = folder;
  for (int pages = 0; pages < sweep_pages_max; ++pages) {
    RILLE_CO_TRY(objects::ListPage page, co_await store_->list(request, token));
    for (const objects::ObjectInfo& info : page.objects) {
      if (!info.key.starts_with(folder)) co_return wrongly_listed(info.key, folder);
      if (kept.contains(info.key)) continue;
      RILLE_CO_CHECK(co_await store_->remove(info.key, token));
    }
    if (page.next_token.empty()) break;
    request.token = std::move(page.next_token);
  }
  co_return success();
}

Async<> StoredCheckpoints::take_all(StoredCheckpoint from, Take take, CancelToken token) {
  for (const StoredFile& file : from.files) {
    Result<objects::ObjectInfo> info = co_await store_->head(key(from, file), token);
    if (!info) co_return std::move(info).error();
    if (info->size_bytes != file.size_bytes)
      co_return make_error(ErrorKind::integrity, fmt::format("'{}' has {} bytes where latest.json says {}", file.name,
                                                             info->size_bytes, file.size_bytes));
    RILLE_CO_CHECK(co_await take(from, file, info->version, token));
  }
  co_return success();
}

Async<std::optional<StoredCheckpoints::Found>> StoredCheckpoints::newest(Latest latest, Take take, CancelToken token) {
  if (latest.checkpoints.empty()) co_return std::optional<Found>();
  Found out;
  for (StoredCheckpoint& one : latest.checkpoints) {
    Result<> taken = co_await take_all(one, take, token);
    if (taken) {
      for (Error& fault : out.skipped)
        fault.hint =
            fmt::format("the last good checkpoint before this one is step {}: {}", one.step, address(one.folder));
      out.checkpoint = std::move(one);
      co_return std::optional<Found>(std::move(out));
    }
    if (!is_damage(taken.error())) co_return std::move(taken).error();
    Error fault = make_error(ErrorKind::integrity,
                             fmt::format("checkpoint {} is damaged: {}", address(one.folder), taken.error().message));
    out.skipped.push_back(std::move(fault));
  }
  Error none = make_error(
      ErrorKind::integrity, fmt::format("there is no good checkpoint at {}", address()),
      fmt::format("restore a version of its objects from before; or delete {} to begin anew", address(latest_name)));
  none.cause = std::make_shared<const Error>(std::move(out.skipped.front()));
  co_return none;
}

Result<std::shared_ptr<StoredCheckpoints>> open_stored_checkpoints(
    const std::string& address, const std::string& name, Loop& loop,
    std::function<Result<>(const std::string& host, const std::string& port)> may_connect, std::string writer,
    std::int64_t epoch) {
  RILLE_TRY(const objects::ObjectUrl url, objects::parse_object_url(address));
  std::string prefix = url.key;
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  prefix += name + "/";
  RILLE_CHECK(objects::check_key(prefix + std::string(400, 'x')));  // a checkpoint's files are below
  RILLE_TRY(std::unique_ptr<objects::ObjectStore> store, open_users_store(url, loop, std::move(may_connect)));
  return std::make_shared<StoredCheckpoints>(std::move(store), loop, std::move(prefix), std::move(writer), epoch);
}

}  // namespace rille::transfer
