// Moves files to and from an instance, over connections that break; box:get. staging.cpp has box:stage.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

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
    if (moved.error().code == cannot_reach) co_return moved.error();  // of the source, not of the instance
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

Async<Value> Calls::get(std::string lease_id, std::string from, std::string to, Value, CancelToken token) {
  agent::TransferProgress progress = transfer_progress("get " + from);
  const Room room = disk_room();
  Move move = [=](agent::AgentClient& agent, CancelToken t) {
    return agent.get(from, to, progress, std::move(t), room);
  };
  std::int64_t generation = 0;
  Result<Value> moved = co_await transfer(lease_id, std::move(move), token, &generation);
  if (moved || !not_there(moved.error())) co_return moved;
  RILLE_CO_TRY(std::optional<Value> kept, co_await get_kept(lease_id, from, to));
  if (kept) co_return std::move(*kept);
  if (generation <= 1) {
    Error none = std::move(moved).error();
    none.message = fmt::format("there is no '{}' on the instance", from);
    none.hint = "paths are relative to its work folder; box:exec(\"list\", { argv = { \"ls\", \"-R\" } }) shows it";
    co_return none;
  }
  Error e = make_error(
      ErrorKind::state,
      fmt::format(
          "'{}' is not on machine {} of this lease: files that calls wrote on earlier machines were lost with them",
          from, generation),
      "fetch such files with box:get before a machine is lost, or write them in a call with setup = true");
  co_return std::move(e).with_cause(moved.error());
}

// For files that are fetched from a machine or an address. Any thread.
Room Calls::disk_room() const {
  return [disk = run_.limits_.disk](std::int64_t bytes) { return disk ? disk->take(bytes) : success(); };
}

agent::TransferProgress Calls::transfer_progress(std::string what) {
  std::int64_t began = run_.loop().clock().monotonic_ns();
  return run_.life_.guard([this, what = std::move(what), began](std::int64_t done, std::int64_t total) {
    if (!run_.hooks().progress) return;
    double seconds = static_cast<double>(run_.loop().clock().monotonic_ns() - began) / 1e9;
    Value p;
    p.set("what", what).set("done", done).set("total", total).set("unit", "bytes");
    if (seconds > 0.2) p.set("rate", static_cast<double>(done) / seconds);
    run_.hooks().progress(p);
  });
}

}  // namespace rille::engine
