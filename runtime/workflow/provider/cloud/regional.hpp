// RegionalProvider: a cloud with regions as one Provider. A driver writes RegionDriver, for one region and in the
// region's own ids; here the regions are asked at once, ids get their region ("us-east-1/i-0123", and of offers
// "us-east-1/p4d.24xlarge:spot"), errors their names, offers their order.
// A cloud whose one address answers for all its places, so that a list names them all, is one driver whose region() is
// "": its offers name their regions themselves, and its machines' ids stay as they are.
// Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/workflow/provider/provider.hpp"
#include "runtime/workflow/provider/spot_market.hpp"

namespace rille::provider::cloud {

class RegionDriver {
 public:
  virtual ~RegionDriver() = default;
  virtual const std::string& region() const = 0;
  // Whether an id looks like one of this cloud's: anything else is nobody's machine.
  virtual bool is_id(std::string_view id) const = 0;
  // Offer::id is the type's name alone; provider, spot, and region unless region() is "" are filled in by the caller.
  // Those that do not match the query may be among them.
  virtual Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) = 0;
  // The id is enough: tag and times are the request's, and a state of gone stands for pending.
  virtual Async<Machine> create(CreateRequest request, std::string type, CancelToken token) = 0;
  // A machine that is unknown: an error with http_status 404, or state gone.
  virtual Async<Machine> describe(std::string id, CancelToken token) = 0;
  virtual Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) = 0;
  virtual Async<> terminate(std::string id, CancelToken token) = 0;
  // As Provider's, of this region; each is optional. `regions` is filled in by the caller.
  virtual Async<Identity> check(CancelToken token);
  virtual Async<std::vector<Quota>> quotas(CancelToken token);
  virtual Async<> resize(std::string id, std::string type, CancelToken token);
  virtual Async<std::vector<PricePoint>> price_history(OfferQuery query, std::int64_t since_us, CancelToken token);
  virtual Async<std::string> owner(CancelToken token);                                       // as Owned's
  virtual std::int64_t skew_us() const { return 0; }                                         // as Clocked's
  virtual Async<> set_end(std::string id, std::int64_t expires_wall_us, CancelToken token);  // as Rearmed's
  // As SpotPriced's, of one type and zone ("": it does not matter), and asked anew: the caller keeps the answer. A
  // point without an instant is the price of now. The offer's id is the type's name.
  virtual SpotMarket market() const { return {}; }
  virtual Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string zone, std::int64_t since_us,
                                                     CancelToken token);
};

// Those of the offers whose region is one of `wanted` ("US" is also "Texas, US"); all, where none is named. capacity:
// there are offers, but all elsewhere: names where.
Result<std::vector<Offer>> only_there(const std::string& provider, std::vector<Offer> offers,
                                      const std::vector<std::string>& wanted);

// `known`: names of regions, for "did you mean" when calls to one that is not among them fail.
std::unique_ptr<Provider> make_regional(Loop& loop, std::string name, Traits traits,
                                        std::vector<std::unique_ptr<RegionDriver>> regions,
                                        std::vector<std::string> known = {});

}  // namespace rille::provider::cloud
