// An account at a provider: the identity of the keys, the regions, quotas, and past prices.
// Plain values; none of these holds a secret.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/money.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::provider {

// A region that was asked; `problem`: why it did not answer.
struct AskedRegion {
  std::string region;
  std::optional<Error> problem;
};

struct Identity {
  std::string who, account;           // "arn:aws:iam::123456789012:user/rille", "123456789012"; "": unknown
  std::string from;                   // where the keys were found, for people: "the environment"
  std::int64_t key_made_wall_us = 0;  // when the key was created; 0: unknown, for the reason in age_unknown
  std::string age_unknown;
  std::int64_t skew_us = 0;          // how far the provider's clock is ahead of ours; 0: less than two seconds
  std::vector<AskedRegion> regions;  // the configured regions

  Value to_value() const;
};

// A limit of the account in a region, in the provider's terms.
struct Quota {
  std::string region, name;
  double limit = 0, used = -1;  // used -1: unknown

  Value to_value() const;
};

// The hourly price of a spot machine from from_wall_us on, until the next point of the zone.
struct PricePoint {
  std::string type, zone, currency = "USD";
  std::int64_t from_wall_us = 0;
  Micros micros_per_hour = 0;

  Value to_value() const;
};

// lacks: the error of an operation that the provider does not support: invalid, "aws has no ..". tell_lack adds the
// provider's name to an error that lacks("", ..) made. is_lack recognizes both.
Error lacks(std::string_view provider, std::string_view what);
Error tell_lack(Error error, std::string_view provider);
bool is_lack(const Error& error);

}  // namespace rille::provider
