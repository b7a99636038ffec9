// A cloud of regions, made from its settings: a driver for each region that they name. Those of them that they name no
// more are reached as well, by what is said of all regions: what was rented there is watched and released, and nothing
// is rented. Loop thread only.
#pragma once

#include <functional>
#include <utility>

#include "runtime/workflow/provider/cloud/regional.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider::cloud {

// The driver of a region, by what the settings say of it. `named`: they name it.
using MadeDriver = Result<std::unique_ptr<RegionDriver>>;
using DriverOf = std::function<MadeDriver(const std::string& region, const Value& settings, bool named)>;

struct RegionalCloud {
  std::string name;
  Traits traits;                   // the settings may say otherwise
  std::vector<std::string> known;  // region names: for "did you mean", and what is reached without being named
  // A region's machines are in parts of the account that the settings name (a project, a group). In a region that they
  // name no more, what is not found may be in another part: it is gone only if it was seen there.
  bool divided = false;
  DriverOf driver_of;
};

// `regions`: region_settings(setup.settings).
Result<std::unique_ptr<Provider>> make_regional(const Setup& setup,
                                                const std::vector<std::pair<std::string, Value>>& regions,
                                                RegionalCloud cloud);

}  // namespace rille::provider::cloud
