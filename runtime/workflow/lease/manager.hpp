// Leases: what a run holds on rented machines. Each move of a lease (creating -> live -> releasing -> released; intent:
// nothing was sent) is committed before the call it announces; names and tokens are derived, never random; a row alone
// is enough to find and terminate its machine, with no script. Released means that the provider says so.
// The rules and the failures that they answer: docs/design/leases.md. Loop thread only.
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

// What a lease's machine is to become, from before its provider is asked until that is over: a part of its row.
struct Change {
  Change() = default;  // not an aggregate: see loop/task.hpp
  provider::Offer offer;
  Micros price_micros_per_hour = 0, cap_micros_per_hour = 0;
  std::int64_t from_us = 0;  // when both prices began to count
  Micros reserved_before = 0, reserved_after = 0;
  Value options;  // of rent, from then on: enough to rent such a machine again

  Value to_value() const;
  static Result<Change> from_value(const Value& value);
};

// One row of the table `leases`.
struct Lease {
  std::int64_t number = 0;  // of the row; 0: it is not known, or there is none yet
  std::string id, run, name, scope, provider, state, token, tag, machine_id, error;
  provider::CreateRequest request;
  std::optional<provider::Machine> machine;
  std::int64_t generation = 1, price_micros_per_hour = 0, created_us = 0, send_by_us = 0, live_us = 0, expires_us = 0,
               released_us = 0;
  Micros cap_micros_per_hour = 0, disk_micros_per_hour = 0;  // what it may come to cost; an ordered disk
  Micros reserved_micros = 0;                                // for this generation, until its end
  Value options;                                             // of rent: enough to rent again
  std::string replacing;                                     // why this generation is given up for another
  std::optional<Change> change;                              // in state `resizing`
  bool detached = false;
  bool has_no_address = false;  // that costs: this process has just recorded none
  std::vector<Tenure> tenures;  // its machines so far; read with the row
  std::string run_tag;          // read with the row
  std::int64_t taken_us = 0;    // when its machine will be taken away, by the notice; read with the row
  // As the row was read: a write holds only against this, so that whoever comes second writes nothing.
  struct Seen {
    std::string state;                       // "": there was no row
    std::int64_t generation = 0, epoch = 0;  // epoch: of the run
  } seen;

  bool billable() const { return state != "released"; }
  bool has_machine() const { return state == "live" || state == "resizing"; }  // that should be there
  bool ever_lived() const { return !tenures.empty() || live_us; }
  // What its machines have cost by `now_us`, estimates until reconciled with the provider.
  Micros spent_micros(std::int64_t now_us) const;  // dollars
  Amounts costs(std::int64_t now_us) const;        // and what is in other currencies
  Price price() const;                             // of an hour of its machine, without the disk
  // What it may have cost in the end: all of that, and this generation's reservation.
  Micros committed_micros(std::int64_t now_us) const;
  Value to_value(std::int64_t now_us) const;
};

// Of one run, tag or month.
struct Money {
  std::string scope, name;         // "run", "month", "tag:eval"; "the run's budget", "the budget of tag 'eval'"
  Micros limit = -1;               // -1: none
  Micros spent = 0, reserved = 0;  // by leases that were released; by the others, until their ends
  std::int64_t held = 0;           // leases that are not released
};

struct Terms;

struct Acquire {
  std::string key;  // the lease's identity inside its run: fiber path/name#n
  std::string name, scope;
  Value options;                 // of rille.rent: provider gpu count spot max_price ttl region budget ..
  store::Fence fence;            // whose lease
  std::int64_t leases_max = -1;  // that the run may hold at a time; -1: any number
};

struct Replace {
  std::string id, why;
  std::int64_t generation = 0;  // that was lost: a newer one that lives is the answer
  Value options;                // that differ from those of the rent; null: none
  store::Fence fence;
  std::int64_t leases_max = -1;
};

struct Resize {
  Resize() = default;
  std::string id;
  Value options;  // gpu count vcpus memory interconnect network_gbps type max_price price; null: none
  store::Fence fence;
  std::function<Result<>()> may;  // asked again just before the row is written; null: it may
};

// What nobody ends now, and when it will end.
struct Held {
  Lease lease;
  std::string why;
  std::int64_t until_us = 0;
};

struct ReapReport {
  std::vector<Lease> released, failed;
  std::vector<Lease> revived;  // machines that lived although their row was settled: ended, or in `failed`, too
  std::vector<Lease> unknown;  // machines with our tag and no row; left alone
  std::vector<Held> held;
  std::vector<Error> errors;  // providers, and regions of others, that could not be asked
};

struct ReapRequest {
  ReapRequest() = default;                            // not an aggregate: see loop/task.hpp
  std::function<bool(const std::string& run)> alive;  // whether a runner holds that run now
  bool in_background = false;  // touches nothing of a run that is alive, not even what has expired
  bool only_due = false;       // rows whose time has come, and no look at what the providers have besides
  std::set<std::string> now;   // runs whose leases end at once, unless they are alive
  std::string unknown;         // a machine with our tag that is in no journal, and ends all the same
};

// How the journal accounts for a machine that bears our tag: it is its lease's own; a second one of that; one of an
// older generation; of a lease that was released; of none that is known here.
enum class Account { own, second, older, settled, unknown };
std::string_view to_string(Account account);

// What the providers show, and what the journal says of it; nothing is ended.
struct Survey {
  struct Shown {
    std::string provider;
    provider::Machine machine;
    Account account = Account::unknown;
    std::optional<Lease> row;
    std::int64_t generation = 0, expires_us = 0;  // by its tag; 0: it is not to be read
  };
  std::vector<Shown> machines;
  std::vector<Lease> unseen;  // rows that should have a machine which their provider does not show
  std::vector<Error> errors;  // providers, and regions of others, that could not be asked
  std::set<std::pair<std::string, std::string>> silent;  // the same, by their names; region "": all of it

  void could_not_ask(const std::string& provider, const std::string& region, Error why);
  bool hears(const std::string& provider, const std::string& region) const;  // whether that region has answered
  void add(Survey part);
};

// What tests replace: time, and the instants at which a process may die.
struct Hooks {
  Hooks() = default;
  std::function<Async<>(std::int64_t ms, CancelToken token)> pause;  // null: real time
  std::function<Async<>()> written;                                  // after each committed row
};

class Manager {
 public:
  // Null: straight into the audit trail.
  using Event = std::function<void(const std::string& event, Value data)>;

  Manager(Loop& loop, store::Journal& journal, provider::Registry& registry, std::string install, Hooks hooks = {});

  // Brings the lease to `live`, from wherever its row stands. capacity: nothing to rent; budget, quota: would exceed
  // what the run may spend or hold; invalid: an option; state: another process has moved the row or taken the run;
  // cancelled: it is released by the caller's scope.
  Async<Lease> acquire(Acquire request, Event event, CancelToken token);
  // Ends the machine and gives the lease another, of the next generation; or goes on with that where a process before
  // has left it. Errors as acquire; state: it is over, or its ttl is.
  Async<Lease> replace(Replace request, Event event, CancelToken token);
  static bool replaces(const Lease& lease);  // when its machine is lost, by its options
  // Makes the lease's machine one of another type that fits the options, or first ends what a process before has left
  // of that. Its disk stays, what ran on it ends. One that fits already, or null options: nothing happens. invalid:
  // options; its provider cannot (provider::is_lack). capacity: no such type, or no room for it. budget: it would cost
  // more than is left. The machine goes on as it was then; where even that is not known, the row stays `resizing`, the
  // error says so, and the next call goes on with it.
  Async<Lease> resize(Resize request, Event event, CancelToken token);
  // From now on the home owns it, and ends it after ttl_ms. invalid: that is longer than it was rented for.
  Async<Lease> detach(std::string id, std::int64_t ttl_ms, store::Fence fence);
  // Terminates and waits for the provider's word. Success when it is released already. Heeds no cancellation. A
  // journal that cannot be written does not stop it: the machine ends, then the error is given. A fence that no
  // longer holds does: the lease belongs to another runner.
  Async<> release(std::string id, Event event, store::Fence fence = {});

  // The agent has said that the machine of that generation was idle, and has ended itself: the lease is released, or,
  // where it wants another machine, waits without one until it is used.
  Async<> end_idle(std::string id, std::int64_t generation, Event event, store::Fence fence);

  Result<std::optional<Lease>> find(const std::string& id) const;
  Result<std::vector<Lease>> of_run(const std::string& run) const;
  Result<std::vector<Lease>> all(bool with_released) const;
  // Until when it is left alone at the latest: its ttl, or the hold of a run that stands still.
  Result<std::int64_t> ends_us(const Lease& lease) const;
  // What bounds a run: its own budget, its tag's, the month's; those without a limit are not there, but for the run.
  Result<std::vector<Money>> money(const std::string& run) const;
  // The limits of the whole home, for `rille budget`.
  Result<std::vector<Money>> budgets() const;
  // Replaces estimates by what the providers have billed, also for machines that no row has seen; gives how many
  // machines that were.
  Async<std::int64_t> reconcile(CancelToken token);
  Result<bool> any_open() const;  // one look-up in an index
  // What the provider says of the machine behind a live lease; a price that it names is booked. One that may not show
  // yet is `pending`, not gone.
  Async<provider::Machine> describe(const Lease& lease, CancelToken token);
  // Asks what a spot machine that lives costs by now, and books it. What cannot be had changes nothing: the last price
  // stays, and who looks at the machine need not mind the error. Providers are asked once in some minutes for all
  // machines of a type and place.
  Async<> follow_price(std::string id, std::int64_t patience_ms, store::Fence fence, CancelToken token);
  // How often its provider wants to be asked what its machine costs, and whether it will be taken away; 0: not.
  std::int64_t look_every_ms(const Lease& lease) const;
  // What all providers are asked at once: offers, prices, quotas.
  ProviderQueries& queries() { return queries_; }
  const ProviderQueries& queries() const { return queries_; }

  // Asks every provider for everything with the tag of this installation, all at once.
  Async<Survey> survey(CancelToken token);
  // Releases what no run will: leases of ended runs, expired ones, those held for too long, unfinished releases; ends
  // machines that live although their row says otherwise.
  Async<ReapReport> reap(ReapRequest request);
  // The last look of a run, after its releases: each place where it has rented is asked once, and what bears the tag of
  // one of its leases but is none's is ended as by reap(), event `stray`. A place that does not answer is a warning:
  // the next reap() looks there. Nothing was rented: nobody is asked. Fails where the journal cannot be read.
  Async<> sweep(std::string run, Event event);

  // The error of a lease whose last release failed, from its row.
  static Error release_failed(const Lease& lease);
  static std::string lease_id(const std::string& run, const std::string& key);

 private:
  struct Refused;
  struct Recent;
  struct Renting;
  struct Search;
  using Wish = ProviderQueries::Wish;
  using Offers = std::shared_ptr<const std::vector<provider::Offer>>;
  // What several coroutines and the journal's thread work on, one after another: a Lease in a frame is 2 KB of it.
  using Shared = std::shared_ptr<Lease>;
  Result<Shared> known(const std::string& id) const;  // null: there is no such row
  Result<std::optional<Lease>> unseen(const std::string& provider, const provider::Bill& bill) const;
  // choose.cpp
  Async<Offers> list(const Wish& wish, CancelToken token);
  Async<std::vector<provider::Offer>> ask_until_answered(const Terms& terms, CancelToken token);
  const provider::Offer* best_of(const Terms& terms, Refused& refused, const char*& obstacle) const;
  Error only_dearer(const Terms& terms, const Refused& refused) const;
  Async<const provider::Offer*> choose(const Wish& wish, Refused& refused, CancelToken token);  // one of refused.listed
  // acquire.cpp, replace.cpp: what `renting` becomes is in it
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
  // What a look has shown that no row names: from here on the ledger has it, whoever dies when. is_its: it is the
  // lease's; else it stands beside it, as ended.
  Async<> note_machine(const Lease& lease, const provider::Machine& machine, bool is_its);
  struct Releasing;
  Async<> terminate_targets(Releasing& r);
  Async<> look_for_tagged(Releasing& r, std::string* met);
  Async<> remove_costless(Releasing& r);
  // The id that it has met; "": there was none. met: the same, also where it fails.
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
  // survey.cpp: of one provider; of one region, "": of all; of these leases alone, null: of all
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
  std::shared_ptr<Recent> recent_;  // what was refused lately, by whichever lease
  std::shared_ptr<Search> search_;  // what is being looked for now
};

}  // namespace rille::lease
