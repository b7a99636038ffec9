// A region for which the settings name several zones: `zone` is a list, and on clouds with a subnet per zone `subnet`
// is a list in the order of `zone`. Each zone has its own offers, so that the next zone is tried when one is sold out:
// offers of the first zone keep their ids, offers of the other zones have the id "TYPE@ZONE". Machines belong to the
// region: any zone's driver finds them. Loop thread only.
#pragma once

#include <functional>
#include <string>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/cloud/elsewhere.hpp"

namespace rille::provider::cloud {

// `make`: makes the region's driver from settings with one zone. config: the numbers of subnets and zones differ.
MadeDriver by_zone(Loop& loop, const std::string& provider, const Value& settings,
                   const std::function<MadeDriver(const Value& of_zone)>& make);

}  // namespace rille::provider::cloud
