// What to say where there are offers, but in other regions than the one that was asked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rille::provider {

// option: how a region is asked for there, with {} for its name, as `region = "{}"`. A name that is near may be that of
// a region which exists, too, and is only not set up: so that is said in either case.
std::string region_hint(std::string_view wanted, const std::vector<std::string>& regions, std::string_view option);

}  // namespace rille::provider
