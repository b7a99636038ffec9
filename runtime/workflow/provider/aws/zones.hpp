// Zones: the zones of a region for new machines. The settings name zones, subnets, or both in pairs, in the order of
// trying. Without them EC2 chooses the zone of an on-demand machine, and a spot machine has one offer per zone, since
// each zone has its own price. Offers of the second and later zones, and of zones not in the settings, carry the zone
// in their name: "p4d.24xlarge@us-east-1b". Loop thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/workflow/provider/aws/ec2.hpp"

namespace rille::provider::aws {

struct Zone {
  std::string name, subnet;  // name "": the subnet's zone, to be requested from EC2
};

// Pairs the settings' lists. config: their lengths differ.
Result<std::vector<Zone>> pair_zones(const std::vector<std::string>& names, const std::vector<std::string>& subnets);

class Zones {
 public:
  Zones(Ec2& ec2, std::vector<Zone> told) : ec2_(ec2), told_(told), known_(std::move(told)) {}

  // A type's offers per zone, from its offer without zone and price. `prices`: spot prices by zone (a zone without one
  // is skipped); nothing: on demand.
  Async<std::vector<Offer>> offers(Offer type, std::optional<Ec2::ZonePrices> prices, CancelToken token);
  // The zone and subnet of an order, from the settings or the offer. config: the settings no longer name the offer's
  // zone.
  Async<Zone> of_offer(std::string zone, CancelToken token);

 private:
  Async<> learn(CancelToken token);

  Ec2& ec2_;
  const std::vector<Zone> told_;
  std::vector<Zone> known_;  // the same, with all names once they were requested
};

struct TypeName {
  std::string type, zone;  // zone "": the first of the settings, or any
};
TypeName read_type_name(const std::string& id);  // from an offer's id without its region

}  // namespace rille::provider::aws
