// Builds a cloud with regions from its settings: a driver for each named region. Regions removed from the settings stay
// reachable through the settings that apply to all regions: their machines are watched and released, but no new machine
// is rented there. Loop thread only.
#pragma once

#include <functional>
#include <utility>

#include "runtime/workflow/provider/cloud/regional.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider::cloud {

// DriverOf makes a region's driver. `named`: the settings name the region.
using MadeDriver = Result<std::unique_ptr<RegionDriver>>;
using DriverOf = std::function<MadeDriver(const std::string& region, const Value& settings, bool named)>;

struct RegionalCloud {
  std::string name;
  Traits traits;                   // the settings may override them
  std::vector<std::string> known;  // all region names: for "did you mean", and for regions not in the settings
  // true: the settings choose a part of the account (a project, a group) per region. In a region removed from the
  // settings, a machine that is not found may be in another part; so it counts as gone only if it was found before.
  bool divided = false;
  DriverOf driver_of;
};

// `regions`: the result of region_settings() for setup.settings.
Result<std::unique_ptr<Provider>> make_regional(const Setup& setup,
                                                const std::vector<std::pair<std::string, Value>>& regions,
                                                RegionalCloud cloud);

}  // namespace rille::provider::cloud
