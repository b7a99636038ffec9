// The behaviour of the simulated cloud: the seed and the rates of each fault. Probabilities are per call or per
// machine, 0 to 1.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::sim {

struct Faults {
  double error = 0;           // a call fails with status 500 or 503 and has had no effect
  double lost_reply = 0;      // a call takes effect, but its reply is lost
  double late = 0;            // a create whose reply was lost takes effect only later, up to create_timeout_ms
  double throttle = 0;        // status 429 with retry_after
  double refuse = 0;          // a create fails with kind capacity although the place is not sold out
  double stillborn = 0;       // a machine is lost before it becomes live
  double wrong_notice = 0;    // a machine with a notice is taken away a day later than announced
  double terminate_lies = 0;  // terminate is accepted without effect
  double terminate_slow = 0;  // terminate takes up to slow_terminate_ms instead of shutdown_ms
};

// A fixed time of loss for one machine, instead of a random one.
struct Fate {
  std::int64_t lost_after_ms = 0;  // time from live to the loss
  bool notice = false;             // a notice comes spot_notice_ms before the loss
};

// Prices of a machine type in place of the invented ones of catalogue.cpp.
struct TypePrice {
  double dollars = 0;     // on demand per hour, in the cheapest region
  double spot_share = 0;  // mean spot price as a share of it
};

struct Options {
  std::uint64_t seed = 1;
  std::map<std::string, TypePrice> prices;  // by Type::id; the other types keep theirs
  Faults faults;
  double scarcity = 0.05;       // the share of time in which a place is sold out
  double preemptions = 1;       // factor on Type::preemptions_per_day; 0: no preemptions
  double without_notice = 0.1;  // the share of preemptions without a notice
  std::int64_t spot_notice_ms = 120'000;
  std::int64_t latency_ms = 150;          // mean latency of a call
  std::int64_t provisioning_ms = 90'000;  // mean time from create to live
  std::int64_t shutdown_ms = 20'000, slow_terminate_ms = 400'000;
  std::int64_t token_lifetime_ms = 24 * 3'600'000;  // 0: tokens are ignored
  std::int64_t create_timeout_ms = 60'000;
  std::int64_t visibility_lag_ms = 10'000;  // how long a new machine may be hidden, or an ended one shown as live
  double forgets = 0.5;                     // the share of machines that describe no longer knows once they are gone
  std::int64_t billing_unit_s = 1, billing_minimum_s = 60;
  std::int64_t look_every_ms = 60'000;  // as Traits::look_every_ms
  // For deterministic scenarios:
  std::map<int, Fate> fates;       // by the machine's number in order of creation, from 1
  std::set<std::string> sold_out;  // types ("b200x8") and offers ("h100x8@us-east") that are always sold out

  static Options calm(std::uint64_t seed);     // nothing goes wrong: no faults, no scarcity, no preemptions
  static Options usual(std::uint64_t seed);    // a typical public cloud
  static Options rough(std::uint64_t seed);    // a bad day: scarce, unreliable, many preemptions
  static Options hostile(std::uint64_t seed);  // for stress tests: random fault rates
};

}  // namespace rille::provider::sim
