// C functions about all runs of a home: list runs and leases, release leases, send signals.
#include <fmt/format.h>

#include <cstdlib>

#include "bindings/c/internal.hpp"
#include "runtime/workflow/engine/remove.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::capi {

namespace {

template <class List, class F>
std::string json_list(const List& list, F to_value) {
  Value::Array out;
  for (const auto& item : list) out.push_back(to_value(item));
  return Value(std::move(out)).to_json();
}

// Waits for `work` and then calls `done`. If the runtime is destroyed first, `done` is not called.
Task<void> report(rille_runtime* rt, Async<> work, rille_done_function done, void* payload) {
  Result<> result = co_await std::move(work);
  --rt->pending;
  if (!done) co_return;
  if (result) {
    done(nullptr, payload);
  } else {
    auto error = hold(std::move(result).error());
    done(error.get(), payload);
  }
}

void spawn(rille_runtime* rt, Async<> work, rille_done_function done, void* payload) {
  ++rt->pending;
  // Start the task in a later turn, so that `done` is never called before the C function has returned.
  auto task = std::make_shared<Task<void>>(report(rt, std::move(work), done, payload));
  rt->loop->post([rt, task] { rt->loop->spawn(std::move(*task)); });
}

Async<> release(rille_runtime* rt, std::vector<std::string> ids) {
  std::optional<Error> first;
  for (const std::string& id : ids) {
    Result<> r = co_await rt->engine->leases().release(id, nullptr);
    if (r) continue;
    rt->say(RILLE_ERROR, fmt::format("lease {} is not released: {}", id, r.error().message));
    if (!first) first = r.error();
  }
  if (first) co_return *first;
  co_return success();
}

// Rows of a run under open rules may not be on the disk yet.
Async<> remove_written(rille_runtime* rt, std::string id) {
  store::Journal::Write nothing = [](store::Db&) -> Result<> { return {}; };
  RILLE_CO_CHECK(co_await rt->engine->journal().commit(std::move(nothing)));
  co_return co_await engine::remove_run(*rt->engine, std::move(id));
}

}  // namespace
}  // namespace rille::capi

using namespace rille;
using namespace rille::capi;

rille_error* rille_runs(rille_runtime* rt, int limit, char** json) {
  if (json) *json = nullptr;
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt));
    if (!json) return null_argument("rille_runs", "json");
    RILLE_TRY(auto rows, rt->engine->runs(limit));
    *json = give_text(json_list(rows, [](const engine::RunRow& row) { return row.to_value(); }));
    return {};
  });
}

rille_error* rille_leases(rille_runtime* rt, int all, char** json) {
  if (json) *json = nullptr;
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt));
    if (!json) return null_argument("rille_leases", "json");
    RILLE_TRY(auto leases, rt->engine->leases().all(all != 0));
    std::int64_t now = rt->loop->clock().wall_us();
    *json = give_text(json_list(leases, [now](const lease::Lease& l) { return l.to_value(now); }));
    return {};
  });
}

rille_error* rille_release(rille_runtime* rt, const char* id, rille_done_function done, void* payload) {
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt));
    RILLE_TRY(auto leases, rt->engine->leases().all(true));
    std::vector<std::string> ids;
    bool known = !id;
    for (const lease::Lease& l : leases) {
      bool meant = !id || l.id == id || l.run == id;
      known = known || meant;
      const bool stays = lease::is_kept(l) && (!id || l.id != id);  // a kept volume is deleted by its own id only
      if (meant && l.billable() && !stays) ids.push_back(l.id);
    }
    if (!known)
      return make_error(ErrorKind::invalid,
                        fmt::format("there is no lease with the id '{}', nor a run with that id that has leases", id),
                        "list them with rille_leases");
    spawn(rt, release(rt, std::move(ids)), done, payload);
    return {};
  });
}

rille_error* rille_signal(rille_runtime* rt, const char* run_id, const char* name, const char* payload_json,
                          rille_done_function done, void* payload) {
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt));
    if (!run_id || !name) return null_argument("rille_signal", run_id ? "name" : "run_id");
    Value message;
    if (payload_json) { RILLE_TRY(message, Value::from_json(payload_json)); }
    spawn(rt, rt->engine->signal(run_id, name, std::move(message)), done, payload);
    return {};
  });
}

rille_error* rille_run_remove(rille_runtime* rt, const char* run_id, rille_done_function done, void* payload) {
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt));
    if (!run_id) return null_argument("rille_run_remove", "run_id");
    spawn(rt, remove_written(rt, run_id), done, payload);
    return {};
  });
}
