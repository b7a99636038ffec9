// Zones: the zones of a region for new machines. The settings name zones, subnets, or both in pairs, to be tried in
// that order. If they name none, EC2 chooses the zone of an on-demand machine, and each type has one spot offer per
// zone, since each zone has its own spot price. Offers of the second and later zones, and of zones not in the settings,
// have the zone in their id: "p4d.24xlarge@us-east-1b". Loop thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/workflow/provider/aws/ec2.hpp"

namespace rille::provider::aws {

struct Zone {
  std::string name, subnet;  // name "": not known yet, to be requested from EC2 by the subnet
};

// Pairs the zones and subnets of the settings. Fails with kind config if the lengths of the two lists differ.
Result<std::vector<Zone>> pair_zones(const std::vector<std::string>& names, const std::vector<std::string>& subnets);

class Zones {
 public:
  Zones(Ec2& ec2, std::vector<Zone> told) : ec2_(ec2), told_(told), known_(std::move(told)) {}

  // One offer per zone, copied from `type`, an offer without zone and price. `prices`: spot prices by zone (a zone
  // without a price is skipped); nullopt: on demand. `only`: no offer of another zone; "": of all.
  Async<std::vector<Offer>> offers(Offer type, std::optional<Ec2::ZonePrices> prices, std::string only,
                                   CancelToken token);
  // The zone of an offer's create call by name; "": EC2 chooses it.
  Async<std::string> name_of(std::string zone, CancelToken token);
  // The zone and subnet for a create call. `zone`: the offer's zone; "": the first zone of the settings. Fails with
  // kind config if the settings no longer name the offer's zone.
  Async<Zone> of_offer(std::string zone, CancelToken token);

 private:
  Async<> learn(CancelToken token);

  Ec2& ec2_;
  const std::vector<Zone> told_;
  std::vector<Zone> known_;  // a copy of told_, into which learn() writes the missing zone names
};

struct TypeName {
  std::string type, zone;  // zone "": the first zone of the settings, or any zone if they name none
};
TypeName read_type_name(const std::string& id);  // `id`: an offer's id without the region prefix

}  // namespace rille::provider::aws
