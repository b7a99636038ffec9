// make_regional: a cloud with regions as one Provider. A driver implements RegionDriver for one region and knows only
// the region's own ids; the provider asks the regions in parallel, adds the region's name to ids ("us-east-1/i-0123",
// for offers "us-east-1/p4d.24xlarge:spot") and to errors, and sorts offers. A cloud with one address for all locations
// is one driver whose region() is "": its offers name their own regions, and its machines' ids are not changed. Loop
// thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/workflow/provider/provider.hpp"
#include "runtime/workflow/provider/spot_market.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::provider::cloud {

class RegionDriver {
 public:
  virtual ~RegionDriver() = default;
  virtual const std::string& region() const = 0;
  // Whether an id has the format of this cloud's machine ids; any other id counts as an unknown machine.
  virtual bool is_id(std::string_view id) const = 0;
  // Offer::id is the type's name alone; the caller fills in provider, spot, and region unless region() is "". May
  // include offers that do not match the query.
  virtual Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) = 0;
  // The result needs only the id: the caller fills in tag and times, and changes state gone to pending.
  virtual Async<Machine> create(CreateRequest request, std::string type, CancelToken token) = 0;
  // For an unknown machine returns an error with http_status 404, or state gone.
  virtual Async<Machine> describe(std::string id, CancelToken token) = 0;
  virtual Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) = 0;
  virtual Async<> terminate(std::string id, CancelToken token) = 0;
  // The next four are as in Provider, for this region, and optional. The caller fills in Identity::regions.
  virtual Async<Identity> check(CancelToken token);
  virtual Async<std::vector<Quota>> quotas(CancelToken token);
  virtual Async<> resize(std::string id, std::string type, CancelToken token);
  virtual Async<std::vector<PricePoint>> price_history(OfferQuery query, std::int64_t since_us, CancelToken token);
  virtual Async<std::string> owner(CancelToken token);                                       // as in Owned
  virtual std::int64_t skew_us() const { return 0; }                                         // as in Clocked
  virtual Async<> set_end(std::string id, std::int64_t expires_wall_us, CancelToken token);  // as in Rearmed
  // As in SpotPriced, for one type and zone ("": any zone). The caller caches the answer. A point whose from_wall_us is
  // 0 is the current price. The offer's id is the type's name.
  virtual SpotMarket market() const { return {}; }
  virtual Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string zone, std::int64_t since_us,
                                                     CancelToken token);
};

// A RegionDriver whose create() makes volumes, too (is_volume(request)); the offer's id is then "volume:KIND".
class VolumeMaker {
 public:
  virtual ~VolumeMaker() = default;
  virtual const std::vector<VolumeKind>& volume_kinds() const = 0;  // empty: it makes none after all
  // The offers for such a volume in this region; each is made by provider::volume_offer. If region() is "", one for
  // each place that has the kind, with the place in Offer::region; the caller keeps those of wish.region.
  virtual Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken token) = 0;
};

// The offers in one of the `wanted` regions ("US" matches "Texas, US"); all if `wanted` is empty. capacity: all offers
// are in other regions, which the error names.
Result<std::vector<Offer>> only_there(const std::string& provider, std::vector<Offer> offers,
                                      const std::vector<std::string>& wanted);

// `known`: region names, for "did you mean" after a failed call to an unknown region.
std::unique_ptr<Provider> make_regional(Loop& loop, std::string name, Traits traits,
                                        std::vector<std::unique_ptr<RegionDriver>> regions,
                                        std::vector<std::string> known = {});

}  // namespace rille::provider::cloud
