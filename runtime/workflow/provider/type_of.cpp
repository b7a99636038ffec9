#include "runtime/workflow/provider/type_of.hpp"

#include <string_view>

namespace rille::provider {

// Takes apart the offer ids that cloud/regional.cpp and sim/catalogue.cpp build.
std::string type_of(const Offer& offer) {
  constexpr std::string_view spot = ":spot";
  std::string out = offer.id;
  if (offer.spot && out.ends_with(spot)) out.resize(out.size() - spot.size());
  if (offer.region.empty()) return out;
  const std::string before = offer.region + "/", behind = "@" + offer.region;
  if (out.starts_with(before)) out = out.substr(before.size(), out.find('@') - before.size());  // cuts off "@ZONE"
  else if (out.ends_with(behind)) out.resize(out.size() - behind.size());
  return out;
}

}  // namespace rille::provider
