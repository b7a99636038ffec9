// box:stage: moves the files of a Staging, several at the same time, by the instance or through this machine.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/core/store/hash.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/engine/staging.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/transfer/store_files.hpp"

namespace rille::engine {

namespace {

constexpr std::size_t pulls_at_once = 32, small_at_once = 256, puts_at_once = 8, fetches_at_once = 8;

// Of small files as many as the channel takes: a round trip to the machine must not cost more than the file.
std::size_t workers_of(const Staging& s) {
  if (!s.why_here.empty()) return std::min(puts_at_once, s.files.size());
  const std::int64_t part_bytes = agent::PullRequest().part_bytes;
  const bool small = std::all_of(s.files.begin(), s.files.end(), [part_bytes](const transfer::PlannedFile& file) {
    return file.size_bytes >= 0 && file.size_bytes <= part_bytes;
  });
  return std::min(small && !s.choices.bytes_per_second_max ? small_at_once : pulls_at_once, s.files.size());
}

// Runs `work` so many times at once; the first error stops the others.
Async<> side_by_side(Loop& loop, std::size_t count, std::function<Async<>(CancelToken)> work, CancelToken token) {
  CancelSource working(token);
  std::vector<Together<void>> workers;
  for (std::size_t i = 0; i < count; ++i)
    workers.push_back({"a file", [work, &working](CancelToken t) -> Async<> {
                         Result<> done = co_await work(std::move(t));
                         if (!done) working.cancel(done.error());
                         co_return done;
                       }});
  const CancelToken stop = working.token();
  const std::vector<Result<>> ends = co_await together(loop, std::move(workers), 0, stop);
  if (working.cancelled()) co_return stop.reason();
  co_return success();
}

// The files that AgentClient::put sends of a folder: files, and links to files, but no folders that are links.
Result<std::vector<std::string>> files_below(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  std::error_code failed;
  fs::recursive_directory_iterator it(folder + "/", failed), end;
  for (; !failed && it != end; it.increment(failed))
    if (it->is_regular_file()) out.push_back(it->path().string().substr(folder.size() + 1));
  if (failed) return errno_error("cannot list", folder, failed.value());
  return out;
}

Result<std::int64_t> bytes_of(const std::string& tree) {
  namespace fs = std::filesystem;
  std::error_code failed;
  RILLE_TRY(const std::vector<std::string> files, files_below(tree));
  std::int64_t sum = 0;
  for (const std::string& file : files)
    if (const auto size = fs::file_size(tree + "/" + file, failed); !failed) sum += static_cast<std::int64_t>(size);
  return sum;
}

// Of the files that are not moved yet. A size that is not known counts as 0.
std::int64_t left_of(const Staging& s) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < s.files.size(); ++i)
    if (s.done_on != s.generation || !s.done[i]) sum += std::max<std::int64_t>(s.files[i].size_bytes, 0);
  return sum;
}

Async<std::vector<std::string>> files_to_keep(Loop& loop, std::shared_ptr<Staging> s) {
  std::vector<std::string> keep;
  if (s->tree.empty()) {
    for (const transfer::PlannedFile& file : s->files) keep.push_back(file.path);
    co_return keep;
  }
  const std::function<Result<std::vector<std::string>>()> list = [folder = s->tree] { return files_below(folder); };
  co_return co_await thread_job(loop, list);
}

// Why a copy that this machine has fetched is not the object that was asked for.
Async<> check_copy(Loop& loop, std::shared_ptr<Staging> s, std::size_t i, std::string path, std::string version) {
  const transfer::PlannedFile& file = s->files[i];
  if (!file.version.empty() && !version.empty() && version != file.version)
    co_return make_error(ErrorKind::integrity,
                         fmt::format("{} changed while it was staged", s->store->address(file.key)),
                         "stage it again when it is no longer written");
  if (s->choices.sha256.empty()) co_return success();
  const std::function<Result<store::Fingerprint>()> hash = [path] { return store::fingerprint_file(path, true); };
  RILLE_CO_TRY(const store::Fingerprint found, co_await thread_job(loop, hash));
  if (found.sha256 == s->choices.sha256) co_return success();
  ::unlink(path.c_str());
  co_return make_error(ErrorKind::integrity,
                       fmt::format("'{}' has the SHA-256 {} but {} is expected", s->store->address(file.key),
                                   found.sha256, s->choices.sha256),
                       "the source has changed or is damaged, or the expected digest is of another version");
}

}  // namespace

// Moves everything, by another way where the instance cannot reach the server.
Async<Value> Calls::carry_out(StagingPtr s, Carry carry, CancelToken token) {
  const auto life = run_.life_.watch();
  if (!s->why_here.empty()) RILLE_CO_CHECK(co_await fetch_here(s, token));
  const Move move = [this, s](agent::AgentClient& agent, CancelToken t) { return move_staged(s, agent, std::move(t)); };
  for (;;) {
    if (life.ended()) co_return run_gone();
    Result<Value> moved = co_await carry(move, token);
    if (moved) {
      for (const std::string& copy : s->local)
        if (!copy.empty() && s->store) ::unlink(copy.c_str());
      if (!s->folder && !s->version.empty() && !s->choices.unpack) moved->set("version", s->version);
      co_return moved;
    }
    const bool all_here = std::find(s->local.begin(), s->local.end(), "") == s->local.end();
    if (moved.error().code != cannot_reach || all_here || life.ended()) co_return moved;
    s->why_here = moved.error().message;
    RILLE_CO_CHECK(co_await fetch_here(s, token));
  }
}

// One machine's part. Repeated after a broken channel, and on the lease's next machine.
Async<agent::Transfer> Calls::move_staged(StagingPtr s, agent::AgentClient& agent, CancelToken token) {
  const auto life = run_.life_.watch();
  agent::Transfer moved;
  if (!s->simulated) RILLE_CO_CHECK(co_await check_room(s, agent, token));
  if (life.ended()) co_return run_gone();
  if (!s->tree.empty()) {
    RILLE_CO_TRY(moved, co_await agent.put(s->tree, s->target, transfer_progress("stage " + s->to), token));
  } else {
    RILLE_CO_CHECK(co_await move_files_of(s, agent, token));
    moved.files = s->done_files;
    moved.size_bytes = s->done_bytes;
  }
  if (s->simulated) co_return moved;
  if (s->choices.unpack) {
    RILLE_CO_TRY(moved, co_await agent.unpack(s->target, folder_named(s->to), token));
    RILLE_CO_CHECK(co_await agent.remove(s->unpack_folder(), token));
  }
  if (s->choices.mirror) {
    if (life.ended()) co_return run_gone();
    RILLE_CO_TRY(std::vector<std::string> keep, co_await files_to_keep(run_.loop(), s));
    RILLE_CO_CHECK(co_await agent.prune(s->target, std::move(keep), token));
  }
  co_return moved;
}

// A folder that does not fit is refused before its first file is moved, not when the disk is full. What lies there
// already, unfinished files included, counts as room: it may be a part of what is staged.
Async<> Calls::check_room(StagingPtr s, agent::AgentClient& agent, CancelToken token) {
  std::error_code none;
  if (!s->folder && !std::filesystem::is_directory(s->tree, none)) co_return success();
  const std::function<Result<std::int64_t>()> count = [s]() -> Result<std::int64_t> {
    if (s->tree.empty()) return left_of(*s);
    return bytes_of(s->tree);
  };
  RILLE_CO_TRY(const std::int64_t wanted, co_await thread_job(run_.loop(), count));
  Result<std::int64_t> room = co_await agent.room(s->target, false, token);
  if (room && wanted > *room) room = co_await agent.room(s->target, true, token);
  if (!room && room.error().kind != ErrorKind::invalid) co_return room.error();
  if (!room || wanted <= *room) co_return success();  // an agent of an older build cannot tell
  Error e = make_error(ErrorKind::quota,
                       fmt::format("'{}' needs {}, but the machine's disk has only {} for it", s->target,
                                   format_size_bytes(wanted), format_size_bytes(*room)),
                       "rent with a larger disk, stage to a volume, or remove files there");
  e.code = "disk_full";
  co_return e;
}

Async<> Calls::move_files_of(StagingPtr s, agent::AgentClient& agent, CancelToken token) {
  if (s->done_on != s->generation) {
    s->done.assign(s->files.size(), false);
    s->done_files = s->done_bytes = 0;
    s->done_on = s->generation;
  }
  s->next = 0;
  RILLE_CO_TRY(s->leased, leases_->find(s->lease));
  const std::function<Async<>(CancelToken)> work = [this, s, &agent](CancelToken t) {
    return move_next(s, agent, std::move(t));
  };
  const auto life = run_.life_.watch();
  RILLE_CO_CHECK(co_await side_by_side(run_.loop(), workers_of(*s), work, std::move(token)));
  if (life.ended()) co_return run_gone();
  tell_staged(*s);
  co_return success();
}

Async<> Calls::move_next(StagingPtr s, agent::AgentClient& agent, CancelToken token) {
  const auto life = run_.life_.watch();
  while (s->next < s->files.size()) {
    if (life.ended()) co_return run_gone();
    if (token.cancelled()) co_return token.reason();
    const std::size_t i = s->next++;
    if (!s->done[i]) RILLE_CO_CHECK(co_await move_one(s, i, agent, token));
  }
  co_return success();
}

Async<> Calls::move_one(StagingPtr s, std::size_t i, agent::AgentClient& agent, CancelToken token) {
  const auto seen = std::make_shared<std::int64_t>(0);  // this file's bytes in done_bytes
  const agent::TransferProgress progress = run_.life_.guard([this, s, seen](std::int64_t done, std::int64_t total) {
    if (s->files.size() == 1) s->total_bytes = total;
    s->done_bytes += done - *seen;
    *seen = done;
    tell_staged(*s);
  });
  Result<> moved = success();
  if (s->local[i].empty()) {
    moved = co_await pull_one(s, i, agent, progress, std::move(token));
  } else {
    Result<agent::Transfer> put = co_await agent.put(s->local[i], s->path_of(i), progress, std::move(token));
    if (!put) moved = put.error();
    else s->files[i].size_bytes = put->size_bytes;
  }
  if (!moved) {
    s->done_bytes -= *seen;
    co_return moved;
  }
  s->done_bytes += s->files[i].size_bytes - *seen;
  s->done[i] = true;
  ++s->done_files;
  co_return success();
}

namespace {
// A machine that was refused knows only what stands behind a signed address. The store's own refusal names the object,
// and what is missing.
Async<> ask_store(std::shared_ptr<Staging> s, std::size_t i, CancelToken token) {
  objects::GetRequest first;
  first.length = 1;
  const objects::Sink drop = [](std::string_view) -> Result<> { return success(); };
  Result<objects::ObjectInfo> got = co_await s->store->get(s->files[i].key, first, drop, std::move(token));
  if (!got && got.error().kind == ErrorKind::auth) co_return std::move(got).error();
  co_return success();
}
}  // namespace

Async<> Calls::pull_one(StagingPtr s, std::size_t i, agent::AgentClient& agent, agent::TransferProgress progress,
                        CancelToken token) {
  const transfer::PlannedFile& file = s->files[i];
  agent::PullRequest request;
  request.path = s->path_of(i);
  request.key = s->key_of(i);
  request.size_bytes = file.size_bytes;
  request.version = file.version;
  request.sha256 = s->choices.sha256;
  if (const std::int64_t most = s->choices.bytes_per_second_max)
    request.bytes_per_second_max = std::max<std::int64_t>(1, most / static_cast<std::int64_t>(workers_of(*s)));
  RILLE_CO_TRY(const std::optional<Fanout::Wanted> wanted, passed_on(*s, i, agent));
  const auto life = run_.life_.watch();
  const auto joined = std::make_shared<bool>(false);
  const CancelToken again = token;
  agent::PullSign sign = [s, i](CancelToken t) { return sign_one(s, i, std::move(t)); };
  if (wanted)
    sign = [this, s, i, wanted, joined](CancelToken t) { return sign_shared(s, i, *wanted, joined, std::move(t)); };
  const Result<agent::Pulled> pulled =
      co_await agent.pull(std::move(request), sign, std::move(progress), std::move(token));
  if (*joined && life.alive()) RILLE_CO_CHECK(fanout_.leave(*wanted, pulled));
  if (!pulled && pulled.error().kind == ErrorKind::auth && !s->web() && life.alive())
    RILLE_CO_CHECK(co_await ask_store(s, i, again));
  if (!pulled) co_return pulled.error();
  s->files[i].size_bytes = pulled->size_bytes;
  s->version = pulled->version;
  co_return success();
}

// What the machine may get from others, or they from it; empty: nothing. Whoever gets bytes from a machine of the run
// trusts it with them, unless the digest of the whole is given: that is for the members of one cluster only.
Result<std::optional<Fanout::Wanted>> Calls::passed_on(const Staging& s, std::size_t i,
                                                       const agent::AgentClient& agent) {
  const std::optional<Fanout::Wanted> no;
  const std::shared_ptr<agent::AgentClient> held = session(s.lease).agent;
  if (held.get() != &agent || !connector_->real_time()) return no;
  const std::optional<lease::Lease>& l = s.leased;
  if (!l || l->provider == "local") return no;  // the machines of one host share a cache
  const std::string cluster = provider::cluster_in(l->request);
  const std::string& digest = s.choices.sha256;
  if (cluster.empty() && (digest.empty() || sessions_.size() < 2)) return no;
  const transfer::PlannedFile& file = s.files[i];
  Fanout::Wanted out;
  const bool one_site = l->provider == "ssh" || l->provider == "slurm";  // their regions are hosts and partitions
  out.group =
      fmt::format("{}\n{}\n{}", l->provider, one_site ? "" : l->request.offer.region, digest.empty() ? cluster : "");
  out.lease = l->id, out.name = l->name, out.agent = held;
  out.source = s.key_of(i), out.shown = s.web() ? net::redact_url(s.from) : s.store->address(file.key);
  out.version = file.version, out.sha256 = digest;
  out.size_bytes = file.size_bytes, out.part_bytes = agent::PullRequest().part_bytes;
  return std::optional(std::move(out));
}

Async<agent::PullAddress> Calls::sign_shared(StagingPtr s, std::size_t i, Fanout::Wanted wanted,
                                             std::shared_ptr<bool> joined, CancelToken token) {
  const auto life = run_.life_.watch();
  RILLE_CO_TRY(agent::PullAddress out, co_await sign_one(s, i, token));
  if (life.ended()) co_return run_gone();
  RILLE_CO_TRY(out.share, co_await fanout_.join(wanted, *joined, std::move(token)));
  if (life.ended()) co_return run_gone();
  *joined = *joined || out.share.has_value();
  co_return out;
}

Async<agent::PullAddress> Calls::sign_one(StagingPtr s, std::size_t i, CancelToken token) {
  agent::PullAddress out;
  if (s->web()) {
    out.url = s->from;
    co_return out;
  }
  objects::PresignRequest request;
  request.key = s->files[i].key;
  request.version = s->files[i].version;
  RILLE_CO_TRY(objects::Presigned made, co_await s->store->presign(std::move(request), std::move(token)));
  out.url = std::move(made.url);
  out.headers = std::move(made.headers);
  out.expires_wall_us = made.expires_wall_us;
  co_return out;
}

// Fetches to this machine what the lease's machine lacks.
Async<> Calls::fetch_here(StagingPtr s, CancelToken token) {
  if (!std::exchange(s->told, true))
    run_.event("warning", Value()
                              .set("what", "stage " + s->to)
                              .set("message", fmt::format("the instance does not fetch {} by itself, so it passes "
                                                          "through this machine: {}",
                                                          s->web() ? net::redact_url(s->from) : s->from, s->why_here)));
  if (s->web()) {
    RILLE_CO_TRY(s->local[0], co_await local_copy(s->from, s->choices.sha256, std::move(token)));
    co_return success();
  }
  s->next = 0;
  const std::function<Async<>(CancelToken)> work = [this, s](CancelToken t) {
    return fetch_objects_here(s, std::move(t));
  };
  co_return co_await side_by_side(run_.loop(), std::min(fetches_at_once, s->files.size()), work, std::move(token));
}

Async<> Calls::fetch_objects_here(StagingPtr s, CancelToken token) {
  const auto shown = transfer_progress("fetch " + s->from);
  const std::string folder = run_.home() + "/staged/" + derive_hex({s->lease, s->from, s->to}, 16) + "/";
  const auto life = run_.life_.watch();
  while (s->next < s->files.size()) {
    if (life.ended()) co_return run_gone();
    if (token.cancelled()) co_return token.reason();
    const std::size_t i = s->next++;
    if (!s->local[i].empty() || s->done[i]) continue;
    const transfer::PlannedFile& file = s->files[i];
    const std::string path = folder + derive_hex({file.key, file.version}, 32);
    std::error_code none;
    const auto here = static_cast<std::int64_t>(std::filesystem::file_size(path, none));
    std::string version = file.version;
    if (none || here != file.size_bytes || version.empty()) {  // else a process that was killed has fetched it
      RILLE_CO_TRY(const transfer::StoreFile made,
                   co_await transfer::fetch_file(*s->store, run_.loop(), file.key, path, disk_room(), shown, token));
      version = made.version;
    }
    if (life.ended()) co_return run_gone();
    RILLE_CO_CHECK(co_await check_copy(run_.loop(), s, i, path, version));
    s->local[i] = path;
    s->version = version;
  }
  co_return success();
}

void Calls::tell_staged(const Staging& s) {
  if (!run_.hooks().progress) return;
  const double seconds = static_cast<double>(run_.loop().clock().monotonic_ns() - s.began_ns) / 1e9;
  Value p;
  p.set("what", "stage " + s.to).set("done", s.done_bytes).set("total", s.total_bytes).set("unit", "bytes");
  if (s.folder) p.set("files", s.done_files).set("files_total", static_cast<std::int64_t>(s.files.size()));
  if (seconds > 0.2) p.set("rate", static_cast<double>(s.done_bytes) / seconds);
  run_.hooks().progress(p);
}

}  // namespace rille::engine
