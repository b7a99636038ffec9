// Zones: where in a region machines are put. Its settings name zones, subnets, or both in pairs, as they are tried; or
// nothing: then EC2 chooses the zone of a machine on demand, and each zone has its own offer of a spot machine, since
// each has its own price. An offer of the second and later, or of a zone that nobody names, bears it:
// "p4d.24xlarge@us-east-1b". Loop thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/workflow/provider/aws/ec2.hpp"

namespace rille::provider::aws {

struct Zone {
  std::string name, subnet;  // name "": of its subnet, which EC2 is asked for
};

// Of the settings' lists. config: they do not fit together.
Result<std::vector<Zone>> pair_zones(const std::vector<std::string>& names, const std::vector<std::string>& subnets);

class Zones {
 public:
  Zones(Ec2& ec2, std::vector<Zone> told) : ec2_(ec2), told_(told), known_(std::move(told)) {}

  // A type's offers here, from the one without zone and price. `prices`: of spot machines, which are not sold where it
  // has none; nothing: on demand.
  Async<std::vector<Offer>> offers(Offer type, std::optional<Ec2::ZonePrices> prices, CancelToken token);
  // What an order says of it: the zone where the settings, or the offer alone, name it; and the subnet.
  // config: the settings do not name the offer's zone any more.
  Async<Zone> of_offer(std::string zone, CancelToken token);

 private:
  Async<> learn(CancelToken token);

  Ec2& ec2_;
  const std::vector<Zone> told_;
  std::vector<Zone> known_;  // the same, with the names of all once that was asked
};

struct TypeName {
  std::string type, zone;  // zone "": the first of the settings, or whichever
};
TypeName read_type_name(const std::string& id);  // of an offer's id without its region

}  // namespace rille::provider::aws
