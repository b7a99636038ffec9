// Leases: the machines that a run has rented. A lease's states are creating -> live -> releasing -> released (and
// intent: no create call was sent yet). A new state is committed to the journal before the provider call that it
// announces. Names and tokens are derived, never random, so that a lease's row alone is enough to find and terminate
// the machine. Released means that the provider confirmed the end. docs/design/leases.md has the rules and the failures
// that they handle. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/log.hpp"
#include "runtime/core/store/journal.hpp"
#include "runtime/workflow/lease/ledger.hpp"
#include "runtime/workflow/lease/queries.hpp"
#include "runtime/workflow/provider/provider.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::lease {

// A pending change of the machine's type, part of the lease's row from before the provider is asked until the outcome
// is known.
struct Change {
  Change() = default;  // not an aggregate: see loop/task.hpp
  provider::Offer offer;
  Micros price_micros_per_hour = 0, cap_micros_per_hour = 0;
  std::int64_t from_us = 0;  // from when on the old and the new price both count
  Micros reserved_before = 0, reserved_after = 0;
  Value options;  // the lease's options after the change, enough to rent a machine of the new type

  Value to_value() const;
  static Result<Change> from_value(const Value& value);
};

// One row of the table `leases`.
struct Lease {
  std::int64_t number = 0;  // the row's number; 0: unknown, or the row is not written yet
  std::string id, run, name, scope, provider, state, token, tag, machine_id, error;
  provider::CreateRequest request;
  std::optional<provider::Machine> machine;
  std::int64_t generation = 1, price_micros_per_hour = 0, created_us = 0, send_by_us = 0, live_us = 0, expires_us = 0,
               released_us = 0;
  Micros cap_micros_per_hour = 0,
         disk_micros_per_hour = 0;  // the machine's highest possible price; the disk's price
  Micros reserved_micros = 0;       // money reserved for this generation until its expiry
  Value options;                    // the options of the rent, enough to rent again
  std::string replacing;            // why the machine is being replaced; "": it is not
  std::optional<Change> change;     // the change of type in progress, in state `resizing`
  bool detached = false;            // the home owns the lease, not the run (see Manager::detach)
  bool has_no_address = false;      // true: the machine has no paid public address, as this process has just recorded
  std::vector<Tenure> tenures;      // all machines of the lease, read from the ledger
  std::string run_tag;              // the budget tag of the lease's run
  std::int64_t taken_us = 0;        // deadline of the machine's preemption notice; 0: no notice
  // The row as it was read. A write succeeds only if the row still matches, so that one of two writers fails.
  struct Seen {
    std::string state;                       // "": there was no row
    std::int64_t generation = 0, epoch = 0;  // epoch: the run's epoch
  } seen;

  bool billable() const { return state != "released"; }
  // It has lost its machine, and another one is still to be rented; until then it keeps its volumes.
  bool between_machines() const { return !billable() && !replacing.empty() && generation > 0; }
  bool has_machine() const { return state == "live" || state == "resizing"; }  // whether its machine should exist
  bool ever_lived() const { return !tenures.empty() || live_us; }
  // The cost of the lease's machines until now_us; an estimate until the provider's bill is known.
  Micros spent_micros(std::int64_t now_us) const;  // the part of the cost that is in dollars
  Amounts costs(std::int64_t now_us) const;        // the cost in all currencies
  Price price() const;                             // the machine's price per hour, without the disk
  // The most that the lease can cost in the end: the cost of earlier generations plus this generation's reservation.
  Micros committed_micros(std::int64_t now_us) const;
  Value to_value(std::int64_t now_us) const;
};

// The budget of one run, tag or month.
struct Money {
  std::string scope, name;         // scope: "run", "month" or "tag:eval"; name: for messages, "the run's budget"
  Micros limit = -1;               // the most that may be spent; -1: no limit
  Micros spent = 0, reserved = 0;  // spent by released leases; reserved by open leases until their expiry
  std::int64_t held = 0;           // number of leases that are not released
};

// The most leases that may be held at a time.
struct LeaseLimit {
  LeaseLimit() = default;
  LeaseLimit(std::int64_t most, std::string whose) : leases(most), run(std::move(whose)) {}
  std::int64_t leases = -1;  // -1: no limit
  std::string run;           // counts the leases of this run and its child runs; "": of the run that rents
};

struct Terms;
class Reaper;

struct Acquire {
  std::string key;  // the lease's identity inside its run: fiber path/name#n
  std::string name, scope;
  Value options;       // the options of rille.rent: provider gpu count spot max_price ttl region ..
  store::Fence fence;  // the fence of the run that owns the lease
  LeaseLimit most;
  bool volume = false;  // a volume is asked for: `options` are those of rille.volume
};

struct Replace {
  std::string id, why;
  std::int64_t generation = 0;  // generation of the lost machine; if a newer machine is live, nothing is replaced
  Value options;                // options that override those of the rent; null: no change
  store::Fence fence;
  LeaseLimit most;
};

struct Resize {
  Resize() = default;
  std::string id;
  Value options;  // gpu count vcpus memory interconnect network_gbps type max_price price; null: finish a begun resize
  store::Fence fence;
  std::function<Result<>()> may;  // an error refuses the resize; called just before the row is written; null: allowed
};

// For tests: simulated time, and the points at which a process may die.
struct Hooks {
  Hooks() = default;
  std::function<Async<>(std::int64_t ms, CancelToken token)> pause;  // waits in simulated time; null: in real time
  std::function<Async<>()> written;                                  // called after each committed row
};

class Manager {
 public:
  // Receives the manager's events. Null: an event is only written to the audit trail.
  using Event = std::function<void(const std::string& event, Value data)>;

  Manager(Loop& loop, store::Journal& journal, provider::Registry& registry, std::string install, Hooks hooks = {});
  ~Manager();

  // Rents a machine, or makes a volume: brings the lease to `live` from whatever state its row is in. Fails with
  // `capacity` if nothing can be rented, `budget` or `quota` if it exceeds what the run may spend or hold, `invalid`
  // for a bad option, `state` if another process has changed the row or runs the run, `cancelled` (the caller's scope
  // then releases the lease).
  Async<Lease> acquire(Acquire request, Event event, CancelToken token);
  // Ends the lease's machine and rents another one, of the next generation; or continues a replacement that an earlier
  // process began. Fails like acquire, and with `state` if the lease has ended or its ttl has passed.
  Async<Lease> replace(Replace request, Event event, CancelToken token);
  static bool replaces(const Lease& lease);  // whether the lease's options ask to replace a lost machine
  // Changes the lease's machine to another type that fits the options, after finishing a change that an earlier process
  // began. The disk stays; running programs end. Does nothing if the type fits already or options are null. Fails with
  // `invalid` for bad options or if the provider cannot resize (provider::is_lack), with `capacity` if there is no such
  // type or none in stock, and with `budget` if the budget cannot pay for it: then the machine continues as before. If
  // the machine's state is unknown, the row stays `resizing`, and the next call continues the change.
  Async<Lease> resize(Resize request, Event event, CancelToken token);
  // Transfers the lease from the run to the home, which ends it after ttl_ms. Fails with `invalid` if that is after the
  // lease's expiry.
  Async<Lease> detach(std::string id, std::int64_t ttl_ms, store::Fence fence);
  // Terminates the lease's machine and waits until the provider confirms. Succeeds if the lease is released already.
  // Fails with `state`, code volume_in_use, for a volume that a lease has. Cannot be cancelled. If the journal cannot
  // be written, ends the machine, but not a volume, and then returns the error. If the fence is outdated, because
  // another process runs the run, ends nothing and fails.
  Async<> release(std::string id, Event event, store::Fence fence = {});

  // Call when the agent of that generation's machine has reported the machine as idle and has exited. Releases the
  // lease; if the lease's options replace lost machines, keeps it without a machine until it is used again.
  Async<> end_idle(std::string id, std::int64_t generation, Event event, store::Fence fence);

  Result<std::optional<Lease>> find(const std::string& id) const;
  Result<std::vector<Lease>> of_run(const std::string& run) const;
  Result<std::vector<Lease>> all(bool with_released) const;
  // The volume of that name that is not deleted; nullopt: none. volumes.hpp has more.
  Result<std::optional<Lease>> volume(const std::string& name) const;
  // The budgets of a run: its own (even without a limit), and those of its parent runs, its tag and the month, if set.
  Result<std::vector<Money>> money(const std::string& run) const;
  // The limits of the whole home, for `rille budget`.
  Result<std::vector<Money>> budgets() const;
  // Replaces estimated costs by the providers' bills, also for machines that no row has seen. Returns the number of
  // machines whose bill was recorded.
  Async<std::int64_t> reconcile(CancelToken token);
  // Whether a lease is not released, apart from kept volumes that are ready, which only a word ends.
  Result<bool> any_open() const;
  // The provider's view of a live lease's machine; a price in it is recorded. A machine that may not be visible yet is
  // `pending`, not gone.
  Async<provider::Machine> describe(const Lease& lease, CancelToken token);
  // Asks for the current price of a live spot machine and records it. On an error the last price stays, and callers may
  // ignore the error. A provider is asked only once in some minutes for all machines of one type and place.
  Async<> follow_price(std::string id, std::int64_t patience_ms, store::Fence fence, CancelToken token);
  // Milliseconds between two queries for the machine's price and preemption notices; 0: the provider is never asked.
  std::int64_t look_every_ms(const Lease& lease) const;
  // Queries to all providers at once: offers, prices, quotas.
  ProviderQueries& queries() { return queries_; }
  const ProviderQueries& queries() const { return queries_; }

  // Ends what no run will end: see reaper.hpp.
  Reaper& reaper() { return *reaper_; }

  // Makes the error for a lease whose last release failed, from the error in the lease's row.
  static Error release_failed(const Lease& lease);
  static std::string lease_id(const std::string& run, const std::string& key);

 private:
  friend class Reaper;  // calls save, end_lease, end_machine, end_one, take_places and tell
  struct Refused;
  struct Recent;
  struct Renting;
  struct Search;
  using Wish = ProviderQueries::Wish;
  using Offers = std::shared_ptr<const std::vector<provider::Offer>>;
  using Place = std::pair<std::string, std::string>;  // provider, region
  // A lease that coroutines and the journal's thread use one after another. It is on the heap, because a Lease would
  // add 2 KB to each coroutine's frame.
  using Shared = std::shared_ptr<Lease>;
  Result<Shared> known(const std::string& id) const;  // reads a lease; null: there is no such row
  Result<std::optional<Lease>> unseen(const std::string& provider, const provider::Bill& bill) const;
  // choose.cpp
  Async<Offers> list(const Wish& wish, CancelToken token);
  Async<std::vector<provider::Offer>> ask_until_answered(const Terms& terms, CancelToken token);
  const provider::Offer* best_of(const Terms& terms, Refused& refused, const char*& obstacle) const;
  Error only_dearer(const Terms& terms, const Refused& refused) const;
  // Returns an offer in refused.listed.
  Async<const provider::Offer*> choose(const Wish& wish, Refused& refused, CancelToken token);
  // acquire.cpp, replace.cpp: these functions put their result into `renting`.
  Async<> plan(Renting& renting);
  Async<> commit_plan(Renting& renting, Wish wish, const provider::Offer& offer, std::vector<provider::Mount> mounts);
  // plan_volume.cpp
  Async<> plan_volume(Renting& renting);
  Result<provider::Provider*> provider_of_volume(const std::string& named) const;
  Shared draft(const Renting& renting, const Terms& terms, const provider::Offer& offer) const;
  Async<> plan_next(Renting& renting, Error refusal);
  Async<> give_up(Renting& renting, Error why);
  Async<provider::Machine> send_create(Lease& lease, provider::Provider* provider, CancelToken token);
  static Error never_in_time(const Lease& lease, Error why);
  static void tell_refused(Renting& renting, const Error& refusal);
  Async<> create(Renting& renting);
  Async<> await_volume(Renting& renting);
  Async<> adopt(Renting& renting);
  Async<bool> find_machine(Renting& renting, bool until_proof);
  Async<> renew(Renting& renting, Replace request);
  Async<> end_for_another(Shared lease, store::Fence fence);
  Async<> save(Shared lease, store::Fence fence, bool unused_volume = false);
  Async<> pause(std::int64_t ms, CancelToken token = {});
  std::int64_t now_us() const { return loop_.clock().wall_us(); }
  // resize.cpp
  using Ledger = std::function<Result<>(store::Db&, Lease&)>;
  Async<> save_with(Lease& lease, store::Fence fence, Ledger ledger);
  Async<Lease> plan_change(Lease lease, Resize request, CancelToken token);
  Async<provider::Offer> choose_type(Lease lease, Terms terms, std::string type, CancelToken token);
  Async<Lease> carry_out(Lease lease, bool unanswered, store::Fence fence, Event event, CancelToken token);
  Async<Lease> look_after(Lease lease, Error why, bool unanswered, store::Fence fence, Event event);
  Async<Lease> changed(Lease lease, provider::Machine machine, store::Fence fence, Event event);
  Async<Lease> unchanged(Lease lease, Error why, store::Fence fence, Event event);
  Async<Lease> vanished(Lease lease, Error why, bool unanswered, store::Fence fence, Event event);
  // release.cpp
  Async<Shared> take_to_end(std::string id, store::Fence fence);
  Async<> end_lease(Shared lease, Event event, store::Fence fence);
  Async<> settle(Shared lease, std::shared_ptr<const Error> unwritten, Event event, store::Fence fence);
  // Records a machine that a query showed and that no row names, so that the ledger has it even if this process dies.
  // is_its: the machine becomes the lease's machine; otherwise it is recorded as a further machine that has ended.
  Async<> note_machine(const Lease& lease, const provider::Machine& machine, bool is_its);
  struct Releasing;
  Async<> terminate_targets(Releasing& r);
  Async<> look_for_tagged(Releasing& r, std::string* met);
  Async<> remove_costless(Releasing& r);
  // Returns the id of the lease's machine; "": there was none. `met` gets this id, even if ending the machine fails.
  Async<std::string> end_machine(std::shared_ptr<const Lease> lease, std::string* met = nullptr);
  // Passes the event on; if `event` is null, writes it to the run's audit trail.
  void tell(const Event& event, const std::string& run, const char* what, Value data);
  Async<> end_one(std::string machine, std::string provider);
  // The places where this process sent create calls for the run; forgets them.
  std::set<Place> take_places(const std::string& run);
  // reprice.cpp
  void book_price(const Lease& lease, const provider::Machine& seen);
  Async<> follow_to_the_end(std::shared_ptr<const Lease> lease, store::Fence fence);

  Loop& loop_;
  store::Journal& journal_;
  provider::Registry& registry_;
  std::string install_;
  Hooks hooks_;
  ProviderQueries queries_;
  std::shared_ptr<Recent> recent_;  // offers that recently had no stock for any lease
  std::shared_ptr<Search> search_;  // offer queries in flight, and what earlier queries found
  const std::unique_ptr<Reaper> reaper_;
};

}  // namespace rille::lease
