// What one is and may at a provider: whose the keys are, where they reach, what they may rent, what was paid before.
// Plain values; none of these holds a secret.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/units.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::provider {

// A region that was asked, and why it did not answer.
struct AskedRegion {
  std::string region;
  std::optional<Error> problem;
};

struct Identity {
  std::string who, account;           // "arn:aws:iam::123456789012:user/rille", "123456789012"; "": it is not told
  std::string from;                   // where the keys were found, for people: "the environment"
  std::int64_t key_made_wall_us = 0;  // 0: `age_unknown` says why that is not known
  std::string age_unknown;
  std::int64_t skew_us = 0;          // of the provider's clock, ahead of ours; 0: less than two seconds
  std::vector<AskedRegion> regions;  // of those that are set up

  Value to_value() const;
};

// How much of something an account may have at a time in a region, in the provider's own words.
struct Quota {
  std::string region, name;
  double limit = 0, used = -1;  // used -1: it is not told

  Value to_value() const;
};

// What a spot machine of a type has cost from then on, until the next point of its zone.
struct PricePoint {
  std::string type, zone, currency = "USD";
  std::int64_t from_wall_us = 0;
  Micros micros_per_hour = 0;

  Value to_value() const;
};

// invalid: "aws has no ..". `provider` may come later, where it is not known yet: tell_lack.
Error lacks(std::string_view provider, std::string_view what);
Error tell_lack(Error error, std::string_view provider);
bool is_lack(const Error& error);

}  // namespace rille::provider
