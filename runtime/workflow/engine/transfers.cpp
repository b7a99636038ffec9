// stage and get: copy files to and from an instance.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/place_of.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/transfer/stage.hpp"

namespace rille::engine {

namespace {
bool not_there(const Error& e) {
  return e.code == fmt::format("errno {}", ENOENT) && (e.operation == "stat" || e.operation == "get");
}
}  // namespace

Async<Value> Calls::transfer(std::string lease_id, Move move, CancelToken token, std::int64_t* moved_to) {
  const auto life = run_.life_.watch();
  use(lease_id, 1);
  CancelSource working(token);
  const auto in_time = bound(lease_id, working);
  Result<Value> moved = co_await move_files(lease_id, std::move(move), working.token(), moved_to);
  if (life.alive()) use(lease_id, -1);
  co_return moved;
}

// Moves files; after a dead agent or a broken channel, the transfer is resumed without repeating the moved data.
Async<Value> Calls::move_files(std::string lease_id, Move move, CancelToken token, std::int64_t* moved_to) {
  std::int64_t generation = 0;
  for (int breaks = 1;; ++breaks) {
    auto agent = co_await client(lease_id, token);
    if (!agent) co_return agent.error();
    RILLE_CO_TRY(std::optional<lease::Lease> l, leases_->find(lease_id));
    if (generation && l->generation != generation) breaks = 1;
    generation = l->generation;
    if (moved_to) *moved_to = generation;
    std::shared_ptr<agent::AgentClient> held = *agent;
    Result<agent::Transfer> moved = co_await move(*held, token);
    if (moved) co_return Value().set("files", moved->files).set("bytes", moved->size_bytes);
    if (token.cancelled()) co_return token.reason();
    if (breaks > reconnects_max) co_return in_time(lease_id, moved.error());
    if (moved.error().kind != ErrorKind::network) {
      note_lie(lease_id, generation, moved.error());
      RILLE_CO_TRY(bool gone, co_await lost(lease_id, generation, token));
      if (!gone) co_return in_time(lease_id, moved.error());
    }
    session(lease_id).agent.reset();
    RILLE_CO_CHECK(co_await sleep_for(run_.loop(), std::min<std::int64_t>(20LL << std::min(breaks, 8), 5'000), token));
  }
}

Async<Value> Calls::stage(std::string lease_id, std::string from, std::string to, Value options, CancelToken token) {
  std::string local = from;
  RILLE_CO_TRY(const bool reads, connector_->reads_source(from, options));
  if (reads) {
    RILLE_CO_TRY(local, co_await local_copy(from, options, token));
    RILLE_CO_TRY(to, place_of(from, local, to));
  }
  agent::TransferProgress progress = transfer_progress("stage " + to);
  Move move = [=](agent::AgentClient& agent, CancelToken t) { return agent.put(local, to, progress, std::move(t)); };
  std::int64_t generation = 0;
  RILLE_CO_TRY(Value moved, co_await transfer(lease_id, std::move(move), token, &generation));
  run_.event("staged", Value(moved).set("to", to));
  co_return moved.set("generation", generation);
}

Async<Value> Calls::get(std::string lease_id, std::string from, std::string to, Value, CancelToken token) {
  agent::TransferProgress progress = transfer_progress("get " + from);
  const Room room = disk_room();
  Move move = [=](agent::AgentClient& agent, CancelToken t) {
    return agent.get(from, to, progress, std::move(t), room);
  };
  std::int64_t generation = 0;
  Result<Value> moved = co_await transfer(lease_id, std::move(move), token, &generation);
  if (moved || !not_there(moved.error())) co_return moved;
  if (generation <= 1) {
    Error none = std::move(moved).error();
    none.message = fmt::format("there is no '{}' on the instance", from);
    none.hint = "paths are relative to its work folder; box:exec(\"list\", { argv = { \"ls\", \"-R\" } }) shows it";
    co_return none;
  }
  RILLE_CO_TRY(std::optional<Value> kept, co_await get_kept(lease_id, from, to));
  if (kept) co_return std::move(*kept);
  Error e = make_error(
      ErrorKind::state,
      fmt::format(
          "'{}' is not on machine {} of this lease: files that calls wrote on earlier machines were lost with them",
          from, generation),
      "fetch such files with box:get before a machine is lost, or write them in a call with setup = true");
  co_return std::move(e).with_cause(moved.error());
}

// A target that ends in '/' ("data/") is a folder: a single file keeps its name in it, and a source folder's contents
// are copied.
Result<std::string> place_of(const std::string& from, const std::string& local, const std::string& to) {
  std::error_code ec;
  if (!to.ends_with('/') || std::filesystem::is_directory(local, ec)) return to;
  std::string name = from.substr(0, std::min(from.size(), from.find_first_of("?#")));
  const std::size_t scheme = from.find("://");
  if (scheme == std::string::npos) name = from;
  else if (name.find('/', scheme + 3) == std::string::npos) name.clear();
  name = name.substr(name.rfind('/') + 1);
  if (!name.empty()) return to + name;
  return make_error(ErrorKind::invalid,
                    fmt::format("'{}' has no file name, so the file to be made in '{}' has none", from, to),
                    fmt::format("add a name: box:stage(address, \"{}NAME\")", to));
}

// Returns the local path of the file or folder to stage. A URL is fetched into the cache of the home first.
Async<std::string> Calls::local_copy(std::string from, Value options, CancelToken token) {
  bool web = from.starts_with("http://") || from.starts_with("https://") || from.starts_with("file://");
  if (std::size_t scheme = from.find("://"); !web && scheme != std::string::npos && scheme < 8)
    co_return make_error(ErrorKind::invalid,
                         fmt::format("cannot stage '{}': {}:// is not supported", from, from.substr(0, scheme)),
                         "use an http(s):// address, file://, or a path");
  std::string sha256 = options.text("sha256");
  if (!web && sha256.empty()) {
    std::error_code ec;
    if (!std::filesystem::exists(from, ec))
      co_return make_error(ErrorKind::io, fmt::format("cannot stage '{}': there is no such file or folder", from),
                           fmt::format("paths are relative to {}", std::filesystem::current_path(ec).string()));
    RILLE_CO_CHECK(transfer::check_ends(from));
    co_return from;
  }
  if (!http_) http_ = std::make_unique<net::HttpClient>(run_.loop());
  transfer::StageOptions stage;
  stage.sha256 = sha256;
  stage.resumes_max = 3;  // few tries, so that an unreachable server is reported to the user within seconds
  stage.may_connect = run_.limits_.may_connect;
  stage.room = disk_room();
  stage.retry.attempts = 2;
  stage.retry.cap_ms = 2'000;
  stage.cache_directory = std::filesystem::path(run_.home()).parent_path().parent_path() / "cache";
  agent::TransferProgress shown = transfer_progress("fetch " + from.substr(from.rfind('/') + 1));
  stage.progress = [shown](const transfer::Progress& p) { shown(p.done_bytes, p.total_bytes); };
  std::string destination = run_.home() + "/staged/" + derive_hex({from, sha256}, 16);
  co_return co_await fetch_once(std::move(from), std::move(destination), std::move(stage), std::move(token));
}

// Boxes that stage the same URL at the same time share one download. If the fiber that downloads is cancelled, the next
// one takes over.
Async<std::string> Calls::fetch_once(std::string from, std::string destination, transfer::StageOptions options,
                                     CancelToken token) {
  const auto life = run_.life_.watch();
  while (!downloads_.try_emplace(destination).second) {
    Future<Result<std::string>> fetched(run_.loop());
    downloads_[destination].push_back(fetched);
    auto registration = token.on_cancel([fetched](const Error& why) { fetched.set(why); });
    auto path = co_await fetched;
    if (life.ended() || token.cancelled() || path || path.error().kind != ErrorKind::cancelled) co_return path;
  }
  auto staged = co_await transfer::stage(*http_, std::move(from), destination, std::move(options), token);
  Result<std::string> path = staged ? Result<std::string>(staged->path) : Result<std::string>(staged.error());
  if (life.ended()) co_return path;
  const auto waiting = downloads_.extract(destination);
  for (const auto& waiter : waiting.mapped()) waiter.set(path);
  co_return path;
}

// For files that are fetched from a machine or an address. Any thread.
Room Calls::disk_room() const {
  return [disk = run_.limits_.disk](std::int64_t bytes) { return disk ? disk->take(bytes) : success(); };
}

agent::TransferProgress Calls::transfer_progress(std::string what) {
  std::int64_t began = run_.loop().clock().monotonic_ns();
  return [this, what = std::move(what), began](std::int64_t done, std::int64_t total) {
    if (!run_.hooks().progress) return;
    double seconds = static_cast<double>(run_.loop().clock().monotonic_ns() - began) / 1e9;
    Value p;
    p.set("what", what).set("done", done).set("total", total).set("unit", "bytes");
    if (seconds > 0.2) p.set("rate", static_cast<double>(done) / seconds);
    run_.hooks().progress(p);
  };
}

}  // namespace rille::engine
