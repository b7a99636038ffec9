// Leases: what a run holds on rented machines. Each move of a lease (intent -> creating -> live -> releasing ->
// released) is committed before the call it announces; names and tokens are derived, never random; a row alone is
// enough to find and terminate its machine, with no script. Released means that the provider says so.
// The rules and the failures that they answer: docs/design/leases.md. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/log.hpp"
#include "runtime/provider/provider.hpp"
#include "runtime/store/journal.hpp"

namespace rille::lease {

// One row of the table `leases`.
struct Lease {
  std::string id, run, name, scope, provider, state, token, tag, machine_id, error;
  provider::CreateRequest request;
  std::optional<provider::Machine> machine;
  std::int64_t generation = 1, price_micros_per_hour = 0, created_us = 0, send_by_us = 0, live_us = 0,
               expires_us = 0, released_us = 0;
  bool detached = false;

  bool billable() const { return state != "released"; }
  // What it has cost by `now_us`, an estimate until reconciled with the provider.
  Micros spent_micros(std::int64_t now_us) const;
  Value to_value(std::int64_t now_us) const;
};

struct Acquire {
  std::string key;                 // the lease's identity inside its run: fiber path/name#n
  std::string name, scope;
  Value options;                   // of rille.rent: provider gpu count spot max_price ttl region budget ..
  store::Fence fence;              // whose lease
};

struct ReapReport {
  std::vector<Lease> released, failed, unknown;  // unknown: machines with our tag and no row
};

class Manager {
 public:
  using Event = std::function<void(const std::string& event, Value data)>;

  Manager(Loop& loop, store::Journal& journal, provider::Registry& registry, std::string install);

  // Brings the lease to `live`, from wherever its row stands. capacity: nothing to rent; budget: would exceed the run's
  // limit; invalid: an option; cancelled: it is released by the caller's scope.
  Async<Lease> acquire(Acquire request, Event event, CancelToken token);
  // Terminates and waits for the provider's word. Success when it is released already. Heeds no cancellation.
  Async<> release(std::string id, Event event);

  Result<std::optional<Lease>> find(const std::string& id) const;
  Result<std::vector<Lease>> of_run(const std::string& run) const;
  Result<std::vector<Lease>> all(bool with_released) const;
  // Whether the provider still knows the machine behind a live lease.
  Async<provider::Machine> describe(const Lease& lease, CancelToken token);
  // Offers of all providers, or of the one named in the query; a failing provider is an entry with an error, not a
  // failure.
  Async<Value> offers(Value query, CancelToken token);

  // Releases what no run will: leases of ended runs, expired ones, unfinished releases. `run_alive` says whether a
  // runner holds that run now.
  Async<ReapReport> reap(std::function<bool(const std::string& run)> run_alive);

  static std::string lease_id(const std::string& run, const std::string& key);

 private:
  Async<Lease> create(Lease lease, Acquire request, Event event, CancelToken token);
  Async<Lease> intend(const Acquire& request, CancelToken token, std::size_t skip, std::int64_t generation);
  Async<> save(Lease lease, store::Fence fence);
  Async<std::optional<provider::Machine>> find_machine(Lease lease);

  Loop& loop_;
  store::Journal& journal_;
  provider::Registry& registry_;
  std::string install_;
};

}  // namespace rille::lease
