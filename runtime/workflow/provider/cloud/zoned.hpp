// A region with several zones in the settings: `zone` is a list, and `subnet` may be a list in the same order, for
// clouds with a subnet per zone. Each zone has its own offers, so that the next zone is tried when one is sold out:
// offers of the first zone keep their names, those of the others are "TYPE@ZONE". Machines belong to the region: any
// zone's driver finds them. Loop thread only.
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
