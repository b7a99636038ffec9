// Leases: the machines that a run has rented. Each state change (creating -> live -> releasing -> released; intent:
// nothing was sent) is committed before the call it announces. Names and tokens are derived, never random; a row alone
// is enough to find and terminate its machine, without the script. Released means that the provider confirmed the end.
// The rules and the failures they handle: docs/design/leases.md. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/base/log.hpp"
#include "runtime/core/store/journal.hpp"
#include "runtime/workflow/lease/ledger.hpp"
#include "runtime/workflow/lease/queries.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::lease {

// A pending change of the machine's type, part of the lease's row from before the provider is asked until the outcome
// is known.
struct Change {
  Change() = default;  // not an aggregate: see loop/task.hpp
  provider::Offer offer;
  Micros price_micros_per_hour = 0, cap_micros_per_hour = 0;
  std::int64_t from_us = 0;  // when both prices began to count
  Micros reserved_before = 0, reserved_after = 0;
  Value options;  // rent options after the change: enough to rent a machine of the new type again

  Value to_value() const;
  static Result<Change> from_value(const Value& value);
};

// One row of the table `leases`.
struct Lease {
  std::int64_t number = 0;  // number of the row; 0: unknown, or the row is not written yet
  std::string id, run, name, scope, provider, state, token, tag, machine_id, error;
  provider::CreateRequest request;
  std::optional<provider::Machine> machine;
  std::int64_t generation = 1, price_micros_per_hour = 0, created_us = 0, send_by_us = 0, live_us = 0, expires_us = 0,
               released_us = 0;
  Micros cap_micros_per_hour = 0,
         disk_micros_per_hour = 0;  // the machine's highest possible price; the disk's price
  Micros reserved_micros = 0;                                // money reserved for this generation until its expiry
  Value options;                                             // the options of the rent, enough to rent again
  std::string replacing;                                     // why the machine is being replaced; "": it is not
  std::optional<Change> change;                              // the change of type in progress, in state `resizing`
  bool detached = false;
  bool has_no_address = false;  // true: the machine has no paid public address, as this process has just recorded
  std::vector<Tenure> tenures;  // all machines of the lease, read from the ledger
  std::string run_tag;          // the budget tag of the lease's run
  std::int64_t taken_us = 0;    // deadline of the machine's preemption notice; 0: no notice
  // The row as it was read. A write succeeds only if the row still matches, so that the second of two writers writes
  // nothing.
  struct Seen {
    std::string state;                       // "": there was no row
    std::int64_t generation = 0, epoch = 0;  // epoch: the run's epoch
  } seen;

  bool billable() const { return state != "released"; }
  bool has_machine() const {
    return state == "live" || state == "resizing";
  }  // whether its machine should exist
  bool ever_lived() const { return !tenures.empty() || live_us; }
  // The cost of the lease's machines until now_us; an estimate until the provider's bill is known.
  Micros spent_micros(std::int64_t now_us) const;  // the part of the cost that is in dollars
  Amounts costs(std::int64_t now_us) const;        // the cost in all currencies
  Price price() const;                             // the machine's price per hour, without the disk
  // The maximum final cost: the cost of earlier generations plus this generation's reservation.
  Micros committed_micros(std::int64_t now_us) const;
  Value to_value(std::int64_t now_us) const;
};

// The budget of one run, tag or month.
struct Money {
  std::string scope, name;         // "run", "month", "tag:eval"; "the run's budget", "the budget of tag 'eval'"
  Micros limit = -1;               // the most that may be spent; -1: no limit
  Micros spent = 0, reserved = 0;  // spent by released leases; reserved by open leases until their expiry
  std::int64_t held = 0;           // leases that are not released
};

struct Terms;

struct Acquire {
  std::string key;  // the lease's identity inside its run: fiber path/name#n
  std::string name, scope;
  Value options;                 // the options of rille.rent: provider gpu count spot max_price ttl region ..
  store::Fence fence;            // the fence of the run that owns the lease
  std::int64_t leases_max = -1;  // most leases that the run may hold at a time; -1: no limit
};

struct Replace {
  std::string id, why;
  std::int64_t generation = 0;  // generation of the lost machine; if a newer machine is live, nothing is replaced
  Value options;                // options that override those of the rent; null: no change
  store::Fence fence;
  std::int64_t leases_max = -1;
};

struct Resize {
  Resize() = default;
  std::string id;
  Value options;  // gpu count vcpus memory interconnect network_gbps type max_price price; null: finish a begun resize
  store::Fence fence;
  std::function<Result<>()> may;  // an error refuses the resize; called just before the row is written; null: allowed
};

// A lease that the reaper leaves alone for now, why, and when it will end it.
struct Held {
  Lease lease;
  std::string why;
  std::int64_t until_us = 0;
};

struct ReapReport {
  std::vector<Lease> released, failed;
  std::vector<Lease> revived;  // machines that were alive although their lease was released; they are ended now
  std::vector<Lease> unknown;  // machines with our tag and no row; left alone
  std::vector<Held> held;
  std::vector<Error> errors;  // providers or regions that could not be asked
};

struct ReapRequest {
  ReapRequest() = default;                            // not an aggregate: see loop/task.hpp
  std::function<bool(const std::string& run)> alive;  // whether a process runs the run now
  bool in_background = false;                         // leave all leases of live runs alone, even expired ones
  bool only_due = false;                              // only rows that are due; do not list the providers' machines
  std::set<std::string> now;                          // runs whose leases end at once, unless a runner holds the run
  std::string unknown;                                // a machine with our tag and no row that is ended anyway
};

// How the journal accounts for a machine with our tag: the lease's own machine; a second machine of the lease; a
// machine of an older generation; a machine of a released lease; of a lease that the journal does not know.
enum class Account { own, second, older, settled, unknown };
std::string_view to_string(Account account);

// The machines that the providers show, each with its journal row. Ends nothing.
struct Survey {
  struct Shown {
    std::string provider;
    provider::Machine machine;
    Account account = Account::unknown;
    std::optional<Lease> row;
    std::int64_t generation = 0, expires_us = 0;  // as the machine's tag says; 0: the tag is not readable
  };
  std::vector<Shown> machines;
  std::vector<Lease> unseen;                             // rows whose machine should exist, but is not shown
  std::vector<Error> errors;                             // providers or regions that could not be asked
  std::set<std::pair<std::string, std::string>>
      silent;  // provider and region without an answer; region "": all

  void could_not_ask(const std::string& provider, const std::string& region, Error why);
  bool hears(const std::string& provider, const std::string& region) const;  // whether the region has answered
  void add(Survey part);
};

// For tests: simulated time, and the points at which a process may die.
struct Hooks {
  Hooks() = default;
  std::function<Async<>(std::int64_t ms, CancelToken token)> pause;  // null: real time
  std::function<Async<>()> written;                                  // called after each committed row
};

class Manager {
 public:
  // Receives the manager's events. Null: an event is only written to the audit trail.
  using Event = std::function<void(const std::string& event, Value data)>;

  Manager(Loop& loop, store::Journal& journal, provider::Registry& registry, std::string install, Hooks hooks = {});

  // Brings the lease to `live` from whatever state its row is in. capacity: nothing to rent; budget, quota: exceeds
  // what the run may spend or hold; invalid: an option; state: another process has changed the row or taken over the
  // run; cancelled: the caller's scope releases the lease.
  Async<Lease> acquire(Acquire request, Event event, CancelToken token);
  // Ends the machine and rents another for the lease, of the next generation, or continues such a replacement that an
  // earlier process began. Errors as acquire; state: the lease has ended, or its ttl has passed.
  Async<Lease> replace(Replace request, Event event, CancelToken token);
  static bool replaces(const Lease& lease);  // whether the lease's options ask to replace a lost machine
  // Changes the lease's machine to another type that fits the options, after finishing a change that an earlier process
  // began. The disk stays; running programs end. Does nothing if the type fits already or options are null. invalid:
  // options, or the provider cannot resize (provider::is_lack). capacity: no such type, or none in stock. budget: it
  // would cost more than is left. After these errors the machine continues as before. If its state is unknown, the row
  // stays `resizing`, the error says so, and the next call continues the change.
  Async<Lease> resize(Resize request, Event event, CancelToken token);
  // Transfers the lease from the run to the home, which ends it after ttl_ms. invalid: longer than it was rented for.
  Async<Lease> detach(std::string id, std::int64_t ttl_ms, store::Fence fence);
  // Terminates the machine and waits until the provider confirms. Succeeds if it is released already. Ignores
  // cancellation. If the journal cannot be written, the machine is ended and then the error returned. A fence that no
  // longer holds stops it: the lease belongs to another runner.
  Async<> release(std::string id, Event event, store::Fence fence = {});

  // The agent of that generation's machine reported it idle and has exited. The lease is released, or, if its options
  // replace machines, kept without one until it is used again.
  Async<> end_idle(std::string id, std::int64_t generation, Event event, store::Fence fence);

  Result<std::optional<Lease>> find(const std::string& id) const;
  Result<std::vector<Lease>> of_run(const std::string& run) const;
  Result<std::vector<Lease>> all(bool with_released) const;
  // When the reaper ends the lease at the latest: its ttl, or the hold time of a halted or interrupted run.
  Result<std::int64_t> ends_us(const Lease& lease) const;
  // The budgets of a run: its own (even without a limit), and the limits of its parents, its tag and the month, if set.
  Result<std::vector<Money>> money(const std::string& run) const;
  // The limits of the whole home, for `rille budget`.
  Result<std::vector<Money>> budgets() const;
  // Replaces estimates by the providers' bills, including bills for machines that no row has seen. Returns the number
  // of machines settled.
  Async<std::int64_t> reconcile(CancelToken token);
  Result<bool> any_open() const;  // whether a lease is not released; costs one index lookup
  // The provider's view of a live lease's machine; a price in it is recorded. A machine that may not be visible yet is
  // `pending`, not gone.
  Async<provider::Machine> describe(const Lease& lease, CancelToken token);
  // Asks for the current price of a live spot machine and records it. On an error the last price stays, and callers may
  // ignore the error. Providers are asked once in some minutes for all machines of a type and place.
  Async<> follow_price(std::string id, std::int64_t patience_ms, store::Fence fence, CancelToken token);
  // How often to ask its provider for the machine's price and preemption notices; 0: never.
  std::int64_t look_every_ms(const Lease& lease) const;
  // Queries to all providers at once: offers, prices, quotas.
  ProviderQueries& queries() { return queries_; }
  const ProviderQueries& queries() const { return queries_; }

  // Asks all providers concurrently for everything with the tag of this installation.
  Async<Survey> survey(CancelToken token);
  // Releases leases that no run will release: of ended runs, expired, held for too long, or with an unfinished release.
  // Ends machines that are alive although their row says otherwise.
  Async<ReapReport> reap(ReapRequest request);
  // A run's last check, after its releases: asks each place where it rented once, and ends machines that bear the tag
  // of one of its leases but that no lease accounts for, as reap() does, with event `stray`. A place that does not
  // answer is a warning; the next reap() checks it again. Asks no provider if the run rented nothing. Fails if the
  // journal cannot be read.
  Async<> sweep(std::string run, Event event);

  // The error for a lease whose last release failed, from its row.
  static Error release_failed(const Lease& lease);
  static std::string lease_id(const std::string& run, const std::string& key);

 private:
  struct Refused;
  struct Recent;
  struct Renting;
  struct Search;
  using Wish = ProviderQueries::Wish;
  using Offers = std::shared_ptr<const std::vector<provider::Offer>>;
  // Shared by coroutines and the journal's thread, one after another: a Lease in a coroutine frame is 2 KB of it.
  using Shared = std::shared_ptr<Lease>;
  Result<Shared> known(const std::string& id) const;  // null: no such row
  Result<std::optional<Lease>> unseen(const std::string& provider, const provider::Bill& bill) const;
  // choose.cpp
  Async<Offers> list(const Wish& wish, CancelToken token);
  Async<std::vector<provider::Offer>> ask_until_answered(const Terms& terms, CancelToken token);
  const provider::Offer* best_of(const Terms& terms, Refused& refused, const char*& obstacle) const;
  Error only_dearer(const Terms& terms, const Refused& refused) const;
  Async<const provider::Offer*> choose(const Wish& wish, Refused& refused,
                                       CancelToken token);  // returns one of refused.listed
  // acquire.cpp, replace.cpp: the result is in `renting`
  Async<> plan(Renting& renting);
  Shared draft(const Renting& renting, const Terms& terms, const provider::Offer& offer) const;
  Async<> plan_next(Renting& renting, Error refusal);
  Async<> give_up(Renting& renting, Error why);
  Async<provider::Machine> send_create(Lease& lease, provider::Provider* provider, CancelToken token);
  static Error never_in_time(const Lease& lease, Error why);
  static void tell_refused(Renting& renting, const Error& refusal);
  Async<> create(Renting& renting);
  Async<> adopt(Renting& renting);
  Async<bool> find_machine(Renting& renting, bool until_proof);
  Async<> renew(Renting& renting, Replace request);
  Async<> end_for_another(Shared lease, store::Fence fence);
  Async<> save(Shared lease, store::Fence fence);
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
  // Records a machine that a query showed and no row names, so that the ledger has it even if this process dies.
  // is_its: it becomes the lease's machine; otherwise it is recorded beside it, as ended.
  Async<> note_machine(const Lease& lease, const provider::Machine& machine, bool is_its);
  struct Releasing;
  Async<> terminate_targets(Releasing& r);
  Async<> look_for_tagged(Releasing& r, std::string* met);
  Async<> remove_costless(Releasing& r);
  // Returns the id of the machine it found; "": none. met: the same id, also set on failure.
  Async<std::string> end_machine(std::shared_ptr<const Lease> lease, std::string* met = nullptr);
  void tell(const Event& event, const char* what, const Lease& lease);
  Async<> end_one(std::string machine, std::string provider);
  // reprice.cpp
  void book_price(const Lease& lease, const provider::Machine& seen);
  Async<> follow_to_the_end(std::shared_ptr<const Lease> lease, store::Fence fence);
  // reap.cpp
  Result<std::optional<Held>> standing(const Lease& lease, const ReapRequest& request) const;
  Async<> reap_rows(const ReapRequest& request, ReapReport& report);
  Async<bool> reap_place(std::vector<Lease> leases, const ReapRequest& request, ReapReport& report);
  Async<> reap_machines(const ReapRequest& request, ReapReport& report);
  Async<bool> reap_at(provider::Provider* provider, const ReapRequest& request, ReapReport& report);
  Async<> end_stray(Survey::Shown shown, const ReapRequest& request, ReapReport& report);
  Async<> end_settled(Lease row, provider::Machine machine, ReapReport& report);
  // survey.cpp: of one provider and one region ("": all), limited to these leases (null: all).
  using Names = std::shared_ptr<const std::set<std::string>>;
  Async<Survey> shown_by(provider::Provider* provider, std::string region, Names leases, CancelToken token);
  // sweep.cpp
  using Place = std::pair<std::string, std::string>;  // provider, region
  Result<std::set<Place>> places_of(const std::string& run);
  Async<bool> sweep_place(Place place, Names leases, ReapReport& report);
  void warn(const Event& event, const std::string& run, const char* what, std::string message);

  Loop& loop_;
  store::Journal& journal_;
  provider::Registry& registry_;
  std::string install_;
  Hooks hooks_;
  ProviderQueries queries_;
  std::shared_ptr<Recent> recent_;  // offers that recently had no stock for any lease
  std::shared_ptr<Search> search_;  // offer queries in flight, and what earlier queries found
};

}  // namespace rille::lease
