// Addressed: a provider whose machines get a public address, for which some clouds charge by the hour.
// Loop thread only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

class Addressed {
 public:
  virtual ~Addressed() = default;
  // Of a machine of that offer, in micro-dollars; 0: it has none, or none is charged for; or price_unknown.
  virtual Micros address_micros_per_hour(const Offer& offer) const = 0;
  // What the settings say, for each machine that has one.
  virtual void set_address_price(Micros micros_per_hour) = 0;
};

inline Micros address_micros_per_hour(const Provider* provider, const Offer& offer) {
  const Addressed* const addressed = dynamic_cast<const Addressed*>(provider);
  return addressed ? addressed->address_micros_per_hour(offer) : 0;
}

// {"aws": 0.005}: dollars for a machine's public address, per hour, by provider; of those that charge for it.
using AddressPrices = std::map<std::string, double>;
Result<AddressPrices> read_address_prices(const Value& value);

namespace cloud {

// The driver of a region of such a cloud (RegionDriver), by its price list in dollars. None: machines there get none.
class AddressListed {
 public:
  virtual ~AddressListed() = default;
  virtual std::optional<Micros> address_micros_per_hour(bool spot) const = 0;
};

}  // namespace cloud
}  // namespace rille::provider
