// The reaper: ends leases that no run will end, and machines that no row of the journal accounts for. Compares the
// machines that the providers show with this installation's tag to the journal's rows. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

// A lease that the reaper does not end yet: why, and when the reaper will end it.
struct Held {
  Lease lease;
  std::string why;
  std::int64_t until_us = 0;
};

struct ReapReport {
  std::vector<Lease> released, failed;
  std::vector<Lease> revived;  // machines that were alive although their lease was released; they are ended now
  // Machines that have this installation's tag but no row, and kept volumes whose row was closed because the provider
  // did not show them; they are not ended.
  std::vector<Lease> unknown;
  std::vector<Held> held;
  std::vector<Error> errors;  // one error for each provider or region that could not be asked
};

struct ReapRequest {
  ReapRequest() = default;                            // not an aggregate: see loop/task.hpp
  std::function<bool(const std::string& run)> alive;  // whether a process runs the run now
  bool in_background = false;                         // end no lease of a running run, even if it has expired
  bool only_due = false;                              // end only leases that are due; do not list providers' machines
  std::set<std::string> now;                          // runs whose leases end at once if no process runs the run
  std::string unknown;                                // id of a machine without a row that is ended anyway; "": none
};

// How the journal accounts for a machine with our tag. own: it is its lease's machine; second: the lease has another
// machine; older: it belongs to an older generation; settled: its lease is released; unknown: the journal has no lease.
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
  std::vector<Lease> unseen;                             // leases whose machine should exist, but is not shown
  std::vector<Error> errors;                             // one error for each provider or region without an answer
  std::set<std::pair<std::string, std::string>> silent;  // {provider, region} without an answer; region "": all of them

  void could_not_ask(const std::string& provider, const std::string& region, Error why);
  bool hears(const std::string& provider, const std::string& region) const;  // whether the region has answered
  void add(Survey part);
};

struct Tag;
// How a lease's row accounts for a machine. The row was read after the machine was listed.
Account account_of(const std::optional<Lease>& row, const provider::Machine& machine, const Tag& tag);

// Whether this is a kept volume that is back: its row was closed because the provider did not list it for a while, not
// because it was deleted. It is reported, and not ended.
bool is_found_again(const Survey::Shown& shown);

class Reaper {
 public:
  // A Manager makes its own: Manager::reaper().
  Reaper(Manager& leases, Loop& loop, store::Journal& journal, provider::Registry& registry, std::string install);

  // Releases leases that no run will release: leases of ended runs, expired leases, leases of runs that are halted for
  // too long, and unfinished releases. Ends machines that are alive although their lease's row says that they ended.
  Async<ReapReport> reap(ReapRequest request);
  // Asks all providers concurrently for their machines with the tag of this installation.
  Async<Survey> survey(CancelToken token);
  // A run's last check, after its releases. Asks each place (provider and region) where the run rented once, and ends
  // machines that have the tag of one of its leases but that no lease accounts for, with the event `stray`. A place
  // that does not answer causes a warning; the next reap() checks it again. If the run rented nothing, no provider is
  // asked. Fails if the journal cannot be read.
  Async<> sweep(std::string run, Manager::Event event);
  // When reap() ends the lease at the latest: its ttl, or the hold time of a halted or interrupted run.
  Result<std::int64_t> ends_us(const Lease& lease) const;

 private:
  using Shared = std::shared_ptr<Lease>;
  using Names = std::shared_ptr<const std::set<std::string>>;
  using Place = std::pair<std::string, std::string>;  // provider, region
  // reap.cpp
  Result<std::optional<Held>> standing(const Lease& lease, const ReapRequest& request) const;
  Async<> reap_rows(const ReapRequest& request, ReapReport& report);
  Async<> close_vanished(Lease volume, ReapReport& report);
  Async<bool> reap_place(std::vector<Lease> leases, const ReapRequest& request, ReapReport& report);
  Async<> reap_machines(const ReapRequest& request, ReapReport& report);
  Async<bool> reap_at(provider::Provider* provider, const ReapRequest& request, ReapReport& report);
  Async<> end_stray(Survey::Shown shown, const ReapRequest& request, ReapReport& report);
  Async<> end_settled(Lease row, provider::Machine machine, ReapReport& report);
  // survey.cpp: shown_by surveys one provider and one region ("": all), for the machines of `leases` (null: of all).
  Async<Survey> shown_by(provider::Provider* provider, std::string region, Names leases, CancelToken token);
  // sweep.cpp
  Result<std::set<Place>> places_of(const std::string& run);
  Async<bool> sweep_place(Place place, Names leases, ReapReport& report);
  std::int64_t now_us() const { return loop_.clock().wall_us(); }

  Manager& leases_;
  Loop& loop_;
  store::Journal& journal_;
  provider::Registry& registry_;
  const std::string install_;
};

}  // namespace rille::lease
