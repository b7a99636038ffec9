// How the simulated cloud behaves: all from one seed, and how often each thing goes wrong. Probabilities are per call
// or per machine, from 0 to 1.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::sim {

struct Faults {
  double error = 0;           // a call fails with status 500 or 503 and has had no effect
  double lost_reply = 0;      // it takes effect, and the connection breaks
  double late = 0;            // a create whose reply was lost takes effect only later, up to create_timeout_ms
  double throttle = 0;        // status 429 with retry_after
  double refuse = 0;          // a create finds nothing left, although the place had some
  double stillborn = 0;       // a machine that never comes up: it is gone before it was live
  double wrong_notice = 0;    // a machine that is announced to be taken away is taken a day later
  double terminate_lies = 0;  // accepted, and nothing happens
  double terminate_slow = 0;  // it takes up to slow_terminate_ms instead of shutdown_ms
};

// What becomes of a machine where that is said and not thrown.
struct Fate {
  std::int64_t lost_after_ms = 0;  // after it was live
  bool notice = false;             // spot_notice_ms before
};

struct Options {
  std::uint64_t seed = 1;
  Faults faults;
  double scarcity = 0.05;       // the share of time in which a place has nothing left
  double preemptions = 1;       // times the catalogue's rate; 0: never
  double without_notice = 0.1;  // the share of preemptions that come unannounced
  std::int64_t spot_notice_ms = 120'000;
  std::int64_t latency_ms = 150;          // of a call, on average
  std::int64_t provisioning_ms = 90'000;  // from the create to a live machine, on average
  std::int64_t shutdown_ms = 20'000, slow_terminate_ms = 400'000;
  std::int64_t token_lifetime_ms = 24 * 3'600'000;  // 0: tokens are ignored
  std::int64_t create_timeout_ms = 60'000;
  std::int64_t visibility_lag_ms = 10'000;  // how late a new machine may show, or an ended one still show as live
  double forgets = 0.5;                     // the share of machines that are unknown once they are gone
  std::int64_t billing_unit_s = 1, billing_minimum_s = 60;
  std::int64_t look_every_ms = 60'000;  // see provider::Traits
  // For worlds without chance: what happens in them is said here.
  std::map<int, Fate> fates;       // by the machine's number, from 1
  std::set<std::string> sold_out;  // types ("b200x8") and offers ("h100x8@us-east") that have nothing left

  static Options calm(std::uint64_t seed);     // nothing goes wrong: no faults, no scarcity, no preemptions
  static Options usual(std::uint64_t seed);    // a public cloud on an ordinary day
  static Options rough(std::uint64_t seed);    // a bad one: scarce, unreliable, quick to take machines away
  static Options hostile(std::uint64_t seed);  // for the engine's torture: the rates themselves are thrown
};

}  // namespace rille::provider::sim
