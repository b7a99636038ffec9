// Addressed: a provider whose machines get a public address, which some clouds bill by the hour.
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
  // For a machine of that offer, in micro-dollars; 0: no address, or a free one; or price_unknown.
  virtual Micros address_micros_per_hour(const Offer& offer) const = 0;
  // The price from the settings, for every machine with an address.
  virtual void set_address_price(Micros micros_per_hour) = 0;
};

inline Micros address_micros_per_hour(const Provider* provider, const Offer& offer) {
  const Addressed* const addressed = dynamic_cast<const Addressed*>(provider);
  return addressed ? addressed->address_micros_per_hour(offer) : 0;
}

// {"aws": 0.005}: dollars per hour of a machine's public address, by provider.
using AddressPrices = std::map<std::string, double>;
Result<AddressPrices> read_address_prices(const Value& value);

namespace cloud {

// A RegionDriver of such a cloud, with its list price in dollars. Nothing: machines there get no address.
class AddressListed {
 public:
  virtual ~AddressListed() = default;
  virtual std::optional<Micros> address_micros_per_hour(bool spot) const = 0;
};

}  // namespace cloud
}  // namespace rille::provider
