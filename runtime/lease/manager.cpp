#include "runtime/lease/manager.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/id.hpp"
#include "runtime/base/time.hpp"
#include "runtime/base/units.hpp"
#include "runtime/lease/rows.hpp"
#include "runtime/lease/terms.hpp"

namespace rille::lease {

namespace {

// of one create call; part of how long absence must last to be proof
constexpr std::int64_t request_timeout_ms = 60'000;
constexpr int create_attempts_max = 5;

using provider::Machine;
using provider::MachineState;

// Whether the provider has surely not made a machine: only then may the next offer be tried.
bool definitive(const Error& e) {
  switch (e.kind) {
    case ErrorKind::capacity:
    case ErrorKind::quota:
    case ErrorKind::auth:
    case ErrorKind::invalid:
    case ErrorKind::config: return true;
    default: return false;
  }
}

}  // namespace

Micros Lease::spent_micros(std::int64_t now_us) const {
  if (!live_us) return 0;
  std::int64_t until = released_us ? released_us : now_us;
  return cost_micros(price_micros_per_hour, std::max<std::int64_t>(0, until - live_us) / 1000);
}

Value Lease::to_value(std::int64_t now_us) const {
  Value v;
  v.set("id", id)
      .set("run", run)
      .set("name", name)
      .set("provider", provider)
      .set("state", state)
      .set("generation", generation);
  v.set("machine", machine_id).set("created", format_utc(created_us)).set("expires", format_utc(expires_us));
  v.set("price_per_hour", static_cast<double>(price_micros_per_hour) / 1e6);
  v.set("spent", static_cast<double>(spent_micros(now_us)) / 1e6);
  if (released_us) v.set("released", format_utc(released_us));
  if (detached) v.set("detached", true);
  if (!error.empty()) v.set("error", error);
  return v;
}

Manager::Manager(Loop& loop, store::Journal& journal, provider::Registry& registry, std::string install)
    : loop_(loop), journal_(journal), registry_(registry), install_(std::move(install)) {}

std::string Manager::lease_id(const std::string& run, const std::string& key) {
  return "l-" + derive_hex({"lease", run, key}, 12);
}

Result<std::optional<Lease>> Manager::find(const std::string& id) const {
  RILLE_TRY(auto rows, read_leases(journal_.reader(), "WHERE id=?", {id}));
  if (rows.empty()) return std::optional<Lease>();
  return std::optional<Lease>(std::move(rows.front()));
}

Result<std::vector<Lease>> Manager::of_run(const std::string& run) const {
  return read_leases(journal_.reader(), "WHERE run=? ORDER BY created_us", {run});
}

Result<std::vector<Lease>> Manager::all(bool with_released) const {
  return read_leases(journal_.reader(),
                     with_released ? "ORDER BY created_us" : "WHERE state<>'released' ORDER BY created_us",
                     {});
}

Async<> Manager::save(Lease lease, store::Fence fence) {
  auto row = std::make_shared<Lease>(std::move(lease));
  store::Journal::Write write = [row](store::Db& db) { return write_lease(db, *row); };
  co_return co_await journal_.commit(std::move(write), std::move(fence));
}

Async<Lease> Manager::acquire(Acquire request, Event event, CancelToken token) {
  std::string id = lease_id(request.fence.run, request.key);
  RILLE_CO_TRY(std::optional<Lease> known, find(id));
  if (known && known->state == "live") co_return std::move(*known);
  if (known && known->state != "intent" && known->state != "creating")
    co_return make_error(ErrorKind::state, fmt::format("lease '{}' is {}", known->name, known->state),
                         "rent again under another name");
  Lease lease;
  if (known) {
    lease = std::move(*known);
  } else {
    RILLE_CO_TRY(lease, co_await intend(request, token, 0, 1));
    event("rent", lease.to_value(loop_.clock().wall_us()));
  }
  co_return co_await create(std::move(lease), std::move(request), std::move(event), std::move(token));
}

// Chooses an offer and commits what will be asked for, before a byte leaves. `skip` offers were refused already.
Async<Lease> Manager::intend(const Acquire& request, CancelToken token, std::size_t skip, std::int64_t generation) {
  RILLE_CO_TRY(Terms terms, read_terms(request.options));
  std::vector<provider::Offer> offers;
  std::optional<Error> failure;
  for (provider::Provider* p : registry_.all()) {
    if (!terms.provider.empty() && p->name() != terms.provider) continue;
    Result<std::vector<provider::Offer>> some = co_await p->offers(terms.query, token);
    if (!some) failure = some.error();
    else offers.insert(offers.end(), some->begin(), some->end());
  }
  std::stable_sort(offers.begin(), offers.end(), [](const auto& a, const auto& b) {
    return a.price_micros_per_hour < b.price_micros_per_hour;
  });
  if (offers.empty() && failure) co_return *failure;
  if (offers.size() <= skip) co_return nothing_to_rent(terms, !offers.empty());

  std::int64_t now = loop_.clock().wall_us();
  Lease lease;
  lease.id = lease_id(request.fence.run, request.key);
  lease.run = request.fence.run;
  lease.name = request.name;
  lease.scope = request.scope;
  lease.generation = generation;
  lease.created_us = now;
  lease.state = "intent";
  const provider::Offer& offer = offers[skip];
  lease.provider = offer.provider;
  lease.price_micros_per_hour = offer.price_micros_per_hour;
  lease.token = derive_uuid({"token", lease.run, request.key, std::to_string(generation), offer.id});
  lease.expires_us = now + terms.ttl_ms * 1000;
  RILLE_CO_CHECK(check_budget(journal_.reader(), lease, terms, now));
  lease.tag = fmt::format("rille-{}-{}-x{}", install_, lease.id, lease.expires_us / 1'000'000);
  lease.request.offer = offer;
  lease.request.tag = lease.tag;
  lease.request.token = lease.token;
  lease.request.expires_wall_us = lease.expires_us;
  lease.request.orphan_after_ms = terms.orphan_after_ms;
  RILLE_CO_CHECK(co_await save(lease, request.fence));
  co_return lease;
}

// Sends the create call, or on resume finds out what became of the one that was sent.
Async<Lease> Manager::create(Lease lease, Acquire request, Event event, CancelToken token) {
  std::size_t refused = 0;
  bool uncertain = lease.state == "creating";  // something was sent whose answer is not known
  for (int attempt = 1;; ++attempt) {
    RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
    const provider::Traits traits = provider->traits();
    std::int64_t now = loop_.clock().wall_us();
    bool resendable = traits.token_lifetime_ms > 0 && now < lease.created_us + traits.token_lifetime_ms * 1000 / 2;
    Result<Machine> made = make_error(ErrorKind::internal, "no create call was made");
    if (lease.state == "creating" && !resendable) {
      RILLE_CO_TRY(std::optional<Machine> found, co_await find_machine(lease));
      if (found) made = std::move(*found);
      else lease.state = "intent", lease.generation += 1;  // proven absent: this is another request
    }
    if (!made) {
      if (token.cancelled()) co_return token.reason();
      lease.state = "creating";
      lease.send_by_us = now + 30'000'000;
      RILLE_CO_CHECK(co_await save(lease, request.fence));
      made = co_await provider->create(lease.request, token);
    }
    if (made) {
      lease.state = "live";
      lease.machine = *made;
      lease.machine_id = made->id;
      lease.live_us = loop_.clock().wall_us();
      RILLE_CO_CHECK(co_await save(lease, request.fence));
      event("live", lease.to_value(lease.live_us));
      co_return lease;
    }
    const Error& e = made.error();
    if (token.cancelled()) co_return token.reason();
    if (definitive(e) && uncertain) {
      // This refusal says nothing about an earlier send of the same request: that machine must be found or proven
      // absent.
      RILLE_CO_TRY(std::optional<Machine> found, co_await find_machine(lease));
      if (found) {
        lease.machine_id = found->id;
        lease.live_us = loop_.clock().wall_us();
        lease.machine = std::move(*found);
        lease.state = "live";
        RILLE_CO_CHECK(co_await save(lease, request.fence));
        event("live", lease.to_value(lease.live_us));
        co_return lease;
      }
      uncertain = false;
    }
    if (definitive(e)) {
      event("refused", error_to_value(e));
      Result<Lease> next = co_await intend(request, token, ++refused, lease.generation + 1);
      if (!next) {
        lease.state = "released";  // nothing was made, and nothing else is to be had
        lease.released_us = loop_.clock().wall_us();
        lease.error = e.message;
        RILLE_CO_CHECK(co_await save(lease, request.fence));
        co_return e;
      }
      lease = std::move(*next);
      attempt = 0;
      continue;
    }
    uncertain = true;
    if (attempt >= create_attempts_max) co_return e;  // the row stays `creating`, and release() settles it
    RILLE_CO_CHECK(co_await sleep_for(loop_, std::min<std::int64_t>(500LL << attempt, 10'000), token));
  }
}

// The machine behind a request whose answer was lost. One empty list never proves absence: it must stay empty until
// nothing that was sent can still become visible.
Async<std::optional<Machine>> Manager::find_machine(Lease lease) {
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  std::int64_t proof_us = lease.send_by_us + (request_timeout_ms + provider->traits().visibility_lag_ms) * 1000;
  if (provider->traits().visibility_lag_ms == 0) proof_us = 0;  // it shows what it has made at once
  while (true) {
    RILLE_CO_TRY(std::vector<Machine> machines, co_await provider->list(lease.tag, {}));
    std::erase_if(machines, [](const Machine& m) { return m.state == MachineState::gone; });
    if (!machines.empty()) {
      std::sort(machines.begin(), machines.end(), [](const Machine& a, const Machine& b) { return a.id < b.id; });
      for (std::size_t i = 1; i < machines.size(); ++i)
        RILLE_CO_CHECK(co_await provider->terminate(machines[i].id, {}));
      co_return std::optional<Machine>(machines.front());
    }
    if (loop_.clock().wall_us() >= proof_us) co_return std::optional<Machine>();
    RILLE_CO_CHECK(co_await sleep_for(loop_, 2'000));
  }
}

Async<> Manager::release(std::string id, Event event) {
  RILLE_CO_TRY(std::optional<Lease> found, find(id));
  if (!found)
    co_return make_error(ErrorKind::invalid, fmt::format("there is no lease '{}'", id),
                         "list them with `rille leases`");
  Lease lease = std::move(*found);
  if (lease.state == "released") co_return success();
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  if (lease.state == "creating" && lease.machine_id.empty()) {
    RILLE_CO_TRY(std::optional<Machine> machine, co_await find_machine(lease));
    if (machine) lease.machine_id = machine->id, lease.live_us = lease.created_us;
  }
  lease.state = "releasing";
  // Unfenced: whoever finds the row may release; doing it twice is harmless, leaving it is not.
  RILLE_CO_CHECK(co_await save(lease, {}));
  Result<> gone;
  for (int attempt = 1; !lease.machine_id.empty(); ++attempt) {
    gone = co_await provider->terminate(lease.machine_id, {});
    if (gone) {
      Result<Machine> now = co_await provider->describe(lease.machine_id, {});
      if (now && now->state == MachineState::gone) break;
      if (!now) gone = now.error();
    }
    if (attempt >= create_attempts_max) {
      lease.error = gone ? "the provider accepted the release, but the machine is still there" : gone.error().message;
      RILLE_CO_CHECK(co_await save(lease, {}));
      Error e = make_error(
          ErrorKind::state,
          fmt::format("lease '{}' ({}) could not be released: {}", lease.name, lease.machine_id, lease.error),
          fmt::format("it may still cost {} per hour; try again with `rille release {}`",
                      format_dollars(lease.price_micros_per_hour), lease.id));
      e.resource = lease.id;
      e.provider = lease.provider;
      co_return e;
    }
    RILLE_CO_CHECK(co_await sleep_for(loop_, std::min<std::int64_t>(100LL << attempt, 5'000)));
  }
  lease.state = "released";
  lease.error.clear();
  lease.released_us = loop_.clock().wall_us();
  RILLE_CO_CHECK(co_await save(lease, {}));
  event("released", lease.to_value(lease.released_us));
  co_return success();
}

Async<Machine> Manager::describe(const Lease& lease, CancelToken token) {
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  co_return co_await provider->describe(lease.machine_id, token);
}

Async<Value> Manager::offers(Value query, CancelToken token) {
  RILLE_CO_TRY(Terms terms, read_terms(query));
  std::vector<provider::Offer> found;
  Value::Array out;
  for (provider::Provider* p : registry_.all()) {
    if (!terms.provider.empty() && p->name() != terms.provider) continue;
    Result<std::vector<provider::Offer>> some = co_await p->offers(terms.query, token);
    if (some) found.insert(found.end(), some->begin(), some->end());
    else out.push_back(Value().set("provider", p->name()).set("error", some.error().message));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.price_micros_per_hour < b.price_micros_per_hour;
  });
  Value::Array all;
  for (const provider::Offer& o : found) all.push_back(o.to_value());
  all.insert(all.end(), out.begin(), out.end());
  co_return Value(std::move(all));
}

Async<ReapReport> Manager::reap(std::function<bool(const std::string& run)> run_alive) {
  ReapReport report;
  RILLE_CO_TRY(std::vector<Lease> leases, all(false));
  std::int64_t now = loop_.clock().wall_us();
  for (Lease& lease : leases) {
    std::string run_state;
    RILLE_CO_CHECK(journal_.reader().query("SELECT state FROM runs WHERE id=?", {lease.run},
                                           [&](const store::Row& row) { run_state = row.text(0); }));
    bool over = run_state == "done" || run_state == "failed" || run_state == "cancelled" || run_state == "cleanup";
    bool expired = now >= lease.expires_us;
    bool vanished = false;
    if (lease.state == "live" && !run_alive(lease.run)) {
      Result<Machine> machine = co_await describe(lease, {});
      vanished = machine && machine->state == MachineState::gone;
    }
    bool due = lease.state == "releasing" || expired || vanished || (over && !lease.detached);
    if (!due || (run_alive(lease.run) && !expired)) continue;
    Event quiet = [](const std::string&, Value) {};
    Result<> r = co_await release(lease.id, std::move(quiet));
    if (!r) lease.error = r.error().message;
    (r ? report.released : report.failed).push_back(lease);
  }
  for (provider::Provider* p : registry_.all()) {
    Result<std::vector<Machine>> machines = co_await p->list("rille-" + install_, {});
    if (!machines) continue;
    for (const Machine& m : *machines) {
      if (m.state == MachineState::gone) continue;
      bool known = false;
      RILLE_CO_CHECK(journal_.reader().query("SELECT 1 FROM leases WHERE tag=?", {m.tag},
                                             [&](const store::Row&) { known = true; }));
      if (known) continue;
      Lease stray;
      stray.provider = p->name();
      stray.machine_id = m.id;
      stray.tag = m.tag;
      // Ours by its tag, in no journal: ended only when its own tag says that it has expired, else reported.
      std::size_t at = m.tag.rfind("-x");
      stray.expires_us = at == std::string::npos ? 0 : std::atoll(m.tag.c_str() + at + 2) * 1'000'000;
      bool stale = stray.expires_us > 0 && now > stray.expires_us;
      if (stale && (co_await p->terminate(m.id, {})).ok()) report.released.push_back(stray);
      else report.unknown.push_back(stray);
    }
  }
  co_return report;
}

}  // namespace rille::lease
