#include "runtime/provider/region_hint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/units.hpp"

namespace rille::provider {

std::string region_hint(std::string_view wanted, const std::vector<std::string>& regions, std::string_view option) {
  const std::string near = did_you_mean(wanted, regions);
  const std::string what = near.empty() ? fmt::format("there is some in: {}", fmt::join(regions, ", "))
                                        : fmt::format("did you mean {}?", fmt::format(fmt::runtime(option), near));
  return what + (near.empty() ? ". " : " ") + "A cloud is asked only in the `regions` of its settings";
}

}  // namespace rille::provider
