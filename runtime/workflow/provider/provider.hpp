// Provider: a service that rents out machines. Only the lease layer decides when to call it, and journals each call
// first.
// Rules for every provider:
// - create with a token that was used before returns the same machine (if traits().token_lifetime_ms > 0).
// - A machine has its tag from its first instant; list finds it by prefix, at the latest visibility_lag_ms after
//   create.
// - terminate of a machine that is gone or never existed succeeds. Success means accepted: a machine is released only
//   when describe reports `gone` or list no longer names it.
// - list names everything with the tag that costs money, including a disk or an address that outlived its machine;
//   terminate accepts each id that list returns.
// - A spot machine that will be taken away has notice_wall_us from the notice on.
// - describe of an unknown machine is a Machine in state gone, not an error.
// - Errors name the provider; capacity, quota, auth and network are distinct kinds; retryable is set if a repeat may
//   help.
// Cancelling stops the wait; whether the call took effect is then unknown.
// Loop thread only. A provider must outlive all calls that are still running.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

// The machines found, and the regions that did not answer, whose machines are unknown.
struct Listing {
  std::vector<Machine> machines;
  std::vector<AskedRegion> unasked;  // each has the error in `problem`
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
  // As list(), for one region; region "": all regions. The result names the regions that did not answer. Fails if no
  // region answers. The default implementation calls list() for all regions.
  virtual Async<Listing> list_in(std::string region, std::string tag_prefix, CancelToken token);
  // Optional. The charges so far of each machine with a bill, also of ended machines and of machines in no journal. A
  // provider without a billing API returns none: estimates then stay estimates.
  virtual Async<std::vector<Bill>> bill(BillQuery query, CancelToken token);
  // The following are optional too: a provider without them fails with invalid, "NAME has no ..", for which is_lack
  // holds. check() proves the credentials with a harmless call in each configured region.
  virtual Async<Identity> check(CancelToken token);
  // The account's quotas, by GPU type and in total, in one region; region "": in all configured regions.
  virtual Async<std::vector<Quota>> quotas(std::string region, CancelToken token);
  // Changes the type of a live machine: stops the machine, changes the type, starts the machine again. The disk stays,
  // processes end, address and price may change. If the type is refused, the machine starts again with its old type,
  // and the refusal is returned.
  virtual Async<Machine> resize(std::string id, std::string type, CancelToken token);
  // The past prices of spot machines that match the query, oldest first.
  virtual Async<std::vector<PricePoint>> price_history(OfferQuery query, std::int64_t since_us, CancelToken token);
};

// The providers of one runtime, by name. The registry owns the providers.
class Registry {
 public:
  Result<> add(std::unique_ptr<Provider> provider);     // error state: the name is taken
  Result<Provider*> find(std::string_view name) const;  // invalid: unknown; the hint has the nearest name
  std::vector<Provider*> all() const;                   // in the order of the add() calls

 private:
  std::vector<std::unique_ptr<Provider>> providers_;
};

}  // namespace rille::provider
