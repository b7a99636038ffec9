// Cloud: the state of the simulated cloud: machines, bill, audit. It outlives the loops and processes that use it. It
// has no timers: a machine's fate is drawn when it is created, and its state at an instant is computed from its times.
// The provider in front of it (sim.hpp) adds latency and faults. One thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/sim/market.hpp"
#include "runtime/workflow/provider/sim/options.hpp"

namespace rille::provider::sim {

// A past type of a resized machine, for billing.
struct Stint {
  Place place;
  Micros price_micros_per_hour = 0;
  std::int64_t from_us = 0, to_us = 0;
};

// A machine and its fate. Times by the cloud's clock; 0: never.
struct Box {
  std::string id, tag, token;
  Place place;
  Micros price_micros_per_hour = 0;  // of its first hour
  std::int64_t asked_us = 0;         // when create was called
  std::int64_t landed_us = 0;        // when it took effect
  std::int64_t shown_us = 0;         // when list and describe may first return it
  std::int64_t live_us = 0;          // as the current type
  std::int64_t stopped_us = 0;       // when it last stopped for a resize, which ended its processes
  std::vector<Stint> before;
  std::int64_t notice_us = 0, lost_us = 0;  // of a preemption, or of a machine that never becomes live
  std::int64_t announced_us = 0;            // the time of loss in the notice
  std::int64_t expires_us = 0;
  std::int64_t idle_after_us = 0, busy_until_us = 0;  // idle limit, 0: none; in use until
  std::int64_t terminated_us = 0, gone_us = 0;        // when the user terminated it, and when that took effect
  bool told_there = false;                            // the notice is also visible on the machine, without delay
  bool forgotten = false;                             // describe no longer knows it once it is gone

  std::int64_t idle_us() const;  // when it ends if it stays unused; 0: never
  std::int64_t end_us() const;   // when it ends; 0: not determined
  bool alive(std::int64_t at_us) const;
  bool preempted(std::int64_t at_us) const;
};

// Event counts, so that a stress test can check its coverage.
struct Counts {
  int calls = 0, created = 0, token_hits = 0, refused = 0, throttled = 0, errors = 0, lost_replies = 0, late = 0,
      resized = 0, stillborn = 0, lies = 0, slow = 0, unseen_terminates = 0, stale_views = 0;
};

class Cloud {
 public:
  Cloud(const Clock& clock, Options options);
  const Options& options() const { return options_; }
  const Dice& dice() const { return dice_; }
  const Market& market() const { return market_; }
  std::int64_t now_us() const { return clock_.monotonic_ns() / 1000 + origin_us_; }

  std::vector<Offer> offers(const OfferQuery& query) const;
  // capacity: sold out. `late_us`: delay of the effect.
  Result<Machine> create(const CreateRequest& request, std::int64_t late_us);
  Machine describe(const std::string& id);
  std::vector<Machine> list(const std::string& tag_prefix);
  void terminate(const std::string& id);
  // state, http_status 404: no such machine; invalid: no such type, or a spot machine; capacity: sold out.
  Result<Machine> resize(const std::string& id, const std::string& type);
  std::vector<PricePoint> price_history(const OfferQuery& query, std::int64_t since_us) const;
  std::vector<Bill> bills(const BillQuery& query) const;

  // From now on calls succeed and new machines are not lost; fates drawn before are kept.
  void end_faults() { options_.faults = {}, options_.scarcity = 0, options_.preemptions = 0; }
  // Marks a live machine as in use until then, as its agent would.
  void use(const std::string& id, std::int64_t until_us);
  // Null: no such machine.
  const Box* find(const std::string& id) const;
  const std::vector<Box>& boxes() const { return boxes_; }
  Micros price_at(const Box& box, std::int64_t at_us) const;
  Micros bill_micros(const Box& box, std::int64_t until_us) const;

  // --- audit: the true state, independent of responses
  Micros bill_micros() const;
  int alive() const;
  int preempted() const;
  int escaped() const;                      // terminated by the user between notice and preemption
  std::map<std::string, int> made() const;  // machines by tag, that is by lease and generation
  Counts counts;

 private:
  std::vector<Box>::iterator locate(const std::string& id);
  Machine view(const Box& box);
  std::int64_t stale_us();
  void foresee(Box& box);
  bool has_none(const Place& place) const;
  Offer offer_of(const Place& place) const;

  const Clock& clock_;
  Options options_;
  Dice dice_;
  Market market_;
  std::int64_t origin_us_;
  std::vector<Box> boxes_;  // "sim-<number>" is at index number - 1
};

}  // namespace rille::provider::sim
