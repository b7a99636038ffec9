// A provider of regions that also reaches those which its settings do not name any more: what was rented there is
// watched and released, and nothing is rented. Loop thread only.
#pragma once

#include <functional>

#include "runtime/provider/cloud/regional.hpp"

namespace rille::provider::cloud {

// The driver of a region, by what the settings say of all regions.
using Elsewhere = std::function<Result<std::unique_ptr<RegionDriver>>(const std::string& region)>;

std::unique_ptr<Provider> make_regional(Loop& loop, std::string name, Traits traits,
                                        std::vector<std::unique_ptr<RegionDriver>> regions,
                                        std::vector<std::string> known, Elsewhere elsewhere);

}  // namespace rille::provider::cloud
