// Rille's calls of Vast.ai's API; results are plain structs. Loop thread only.
//
// Vast may refuse a create and still make a stopped instance, whose disk costs money: rent() destroys that instance.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::vast {

struct Instance {
  std::string id, status, label, place, type, address;
  bool stopped = false, outbid = false;
  int port = 0;
  std::int64_t created_wall_us = 0;
  Micros micros_per_hour = price_unknown;
};

// Reads the API key, in the order of Vast's command: VAST_API_KEY, ~/.config/vastai/vast_api_key, ~/.vast_api_key.
net::CredentialChain key_chain(Loop& loop);

class Market {
 public:
  Market(Loop& loop, net::CredentialChain& keys, const Value& endpoints);

  // The cheapest of Vast's asks (machines that hosts offer) that match, with prices and locations; offer id: ask id.
  Async<std::vector<Offer>> asks(OfferQuery query, CancelToken token);
  // Returns the new instance's id.
  Async<std::string> rent(std::string ask, Value request, std::int64_t send_by_wall_us, CancelToken token);
  Async<Instance> describe(std::string id, CancelToken token);  // error with http_status 404: no such instance
  Async<std::vector<Instance>> list(CancelToken token);         // requests all pages
  Async<> destroy(std::string id, CancelToken token);           // error with http_status 404: no such instance
  Async<Identity> identity(CancelToken token);
  std::int64_t skew_us() const { return api_.skew_us(); }
  Async<std::string> account(CancelToken token);  // the account's id

 private:
  Async<Value> user(CancelToken token);
  Async<Value> call(std::string operation, net::Parts parts, net::Effect effect, CancelToken token);

  std::string url_;
  net::Api api_;
};

}  // namespace rille::provider::vast
