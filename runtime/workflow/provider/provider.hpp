// Provider: somebody who rents out machines. The lease layer alone decides when to call it, and journals each call
// first.
// Rules for every provider:
// - create with a token that was used before gives the machine of that token (when traits().token_lifetime_ms > 0).
// - The tag is on the machine from its first instant; list finds it by prefix, at latest visibility_lag_ms after
// create.
// - terminate of a machine that is gone, or never was, succeeds. A success means accepted: only describe or list saying
//   `gone` (or no longer naming it) means released.
// - list names everything with the tag that costs money, also a disk or an address that outlived its machine; terminate
//   takes each id that list gives.
// - A spot machine that will be taken away bears notice_wall_us from the notice on.
// - describe of an unknown machine is a Machine in state gone, not an error.
// - Errors name the provider; capacity, quota, auth and network are told apart; retryable is set where a repeat may
// help.
// Cancelling stops waiting; whether the call took effect is then unknown.
// Loop thread only. A provider outlives its calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

// What was found, and the regions that could not be asked: of those nothing is known.
struct Listing {
  std::vector<Machine> machines;
  std::vector<AskedRegion> unasked;  // each with its problem
};

class Provider {
 public:
  virtual ~Provider() = default;
  virtual const std::string& name() const = 0;
  virtual const Traits& traits() const = 0;
  virtual Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) = 0;  // cheapest first; may be empty
  virtual Async<Machine> create(CreateRequest request, CancelToken token) = 0;
  virtual Async<Machine> describe(std::string id, CancelToken token) = 0;
  virtual Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) = 0;  // all states but gone
  virtual Async<> terminate(std::string id, CancelToken token) = 0;
  // As list, of one region or, "", of all, where one that does not answer hides nothing of the others: it is named.
  // Fails where nobody answers at all. Without an own one: list, which asks everywhere.
  virtual Async<Listing> list_in(std::string region, std::string tag_prefix, CancelToken token);
  // Optional. What it has charged so far, for those machines that it has a bill for; also for ended ones, and for those
  // of which no journal knows. A provider without bills gives none: estimates then stay estimates.
  virtual Async<std::vector<Bill>> bill(BillQuery query, CancelToken token);
  // What follows is optional, too: a provider without it fails with invalid, "NAME has no ..", for which is_lack holds.
  // A harmless call that proves the credentials, in each region that is set up.
  virtual Async<Identity> check(CancelToken token);
  // Of a region, "": of all that are set up. What matters for GPUs, and the whole.
  virtual Async<std::vector<Quota>> quotas(std::string region, CancelToken token);
  // Makes a live machine one of another type: stops it, and starts it again. Its disk stays, what ran on it ends, and
  // its address and price may be others. One that cannot become that type goes on as it was, with the refusal.
  virtual Async<Machine> resize(std::string id, std::string type, CancelToken token);
  // What spot machines that fit the query have cost since then, oldest first.
  virtual Async<std::vector<PricePoint>> price_history(OfferQuery query, std::int64_t since_us, CancelToken token);
};

// The providers of one runtime, by name. Owns them.
class Registry {
 public:
  Result<> add(std::unique_ptr<Provider> provider);     // state: that name is taken
  Result<Provider*> find(std::string_view name) const;  // invalid: with the nearest name
  std::vector<Provider*> all() const;                   // in the order in which they were added

 private:
  std::vector<std::unique_ptr<Provider>> providers_;
};

}  // namespace rille::provider
