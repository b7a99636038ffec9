#include "runtime/workflow/provider/sim/options.hpp"

#include "runtime/workflow/provider/sim/dice.hpp"

namespace rille::provider::sim {

Options Options::calm(std::uint64_t seed) {
  Options o;
  o.seed = seed;
  o.scarcity = o.preemptions = 0;
  return o;
}

Options Options::usual(std::uint64_t seed) {
  Options o;
  o.seed = seed;
  o.faults.error = 0.005;
  o.faults.lost_reply = 0.002;
  o.faults.throttle = 0.005;
  o.faults.refuse = 0.02;
  o.faults.terminate_slow = 0.05;
  return o;
}

Options Options::rough(std::uint64_t seed) {
  Options o = usual(seed);
  o.faults.error = o.faults.throttle = 0.05;
  o.faults.lost_reply = 0.02;
  o.faults.late = 0.5;
  o.faults.refuse = 0.2;
  o.faults.stillborn = 0.05;
  o.faults.terminate_lies = 0.05;
  o.scarcity = 0.3;
  o.preemptions = 4;
  o.without_notice = 0.5;
  return o;
}

Options Options::hostile(std::uint64_t seed) {
  Dice dice(seed);
  // Each fault is off for half of the seeds: a fault that is always on would hide the effects of other faults.
  auto rate = [&](const char* what, double most) { return dice.chance(0.5, what) ? most * dice.unit(what, 1) : 0.0; };
  Options o;
  o.seed = seed;
  o.faults.error = rate("error", 0.25);
  o.faults.lost_reply = rate("lost", 0.25);
  o.faults.late = rate("late", 1.0);
  o.faults.throttle = rate("throttle", 0.25);
  o.faults.refuse = rate("refuse", 0.3);
  o.faults.stillborn = rate("stillborn", 0.2);
  o.faults.wrong_notice = rate("wrong notice", 0.3);
  o.faults.terminate_lies = rate("lies", 0.4);
  o.faults.terminate_slow = rate("slow", 0.5);
  o.scarcity = rate("scarcity", 0.3);
  o.preemptions = rate("preemptions", 12);
  o.without_notice = dice.unit("notice");
  o.token_lifetime_ms = dice.chance(0.5, "tokens") ? 24 * 3'600'000 : 0;
  o.visibility_lag_ms = dice.chance(0.5, "lag") ? dice.between(0, 120'000, "lag", 1) : 0;
  o.provisioning_ms = dice.between(0, 200'000, "provisioning");
  o.forgets = dice.unit("forgets");
  o.billing_unit_s = dice.chance(0.3, "unit") ? 60 : 1;
  o.billing_minimum_s = dice.chance(0.3, "minimum") ? 600 : 0;
  return o;
}

}  // namespace rille::provider::sim
