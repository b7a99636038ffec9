// A region of which the settings name several zones, each with a subnet of its own where the cloud wants that: `zone`
// is a list, and `subnet` may be one, in the same order. Each zone sells by itself, so that the next is tried where one
// has nothing left: the first zone's offers are named as ever, those of the others "TYPE@ZONE". What is rented is the
// region's: any zone's driver finds it. Loop thread only.
#pragma once

#include <functional>
#include <string>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/cloud/elsewhere.hpp"

namespace rille::provider::cloud {

// `make`: the driver of the region by settings that name one zone. config: more subnets than zones, or fewer.
MadeDriver by_zone(Loop& loop, const std::string& provider, const Value& settings,
                   const std::function<MadeDriver(const Value& of_zone)>& make);

}  // namespace rille::provider::cloud
