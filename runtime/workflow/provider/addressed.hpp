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
  // The price of the public address of a machine of that offer, in micro-dollars. 0: no address, or a free one;
  // price_unknown: the cost is not known.
  virtual Micros address_micros_per_hour(const Offer& offer) const = 0;
  // Sets the price from the settings file, which then applies to every machine with an address.
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

// A RegionDriver that knows the cloud's list price of an address in micro-dollars. nullopt: no public addresses.
class AddressListed {
 public:
  virtual ~AddressListed() = default;
  virtual std::optional<Micros> address_micros_per_hour(bool spot) const = 0;
};

}  // namespace cloud
}  // namespace rille::provider
