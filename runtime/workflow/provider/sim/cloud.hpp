// Cloud: the simulated cloud itself, as the world sees it: its machines, its bill, its audit. It outlives the loops and
// processes that talk to it. It has no timers: what becomes of a machine is thrown when it is made, and what is true at
// an instant follows from instants alone. The provider in front of it (sim.hpp) adds latency and faults.
// One thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/sim/market.hpp"
#include "runtime/workflow/provider/sim/options.hpp"

namespace rille::provider::sim {

// What a machine was before it became another type, while it was billed as that.
struct Stint {
  Place place;
  Micros price_micros_per_hour = 0;
  std::int64_t from_us = 0, to_us = 0;
};

// A machine and all that will happen to it. Instants of the cloud's own clock; 0: never.
struct Box {
  std::string id, tag, token;
  Place place;
  Micros price_micros_per_hour = 0;  // of its first hour
  std::int64_t asked_us = 0;         // when the create call came
  std::int64_t landed_us = 0;        // when it took effect
  std::int64_t shown_us = 0;         // from when list and describe may name it
  std::int64_t live_us = 0;          // of the type that it is now
  std::int64_t stopped_us = 0;       // when it last stopped, to become that; what ran there has ended
  std::vector<Stint> before;
  std::int64_t notice_us = 0, lost_us = 0;  // of a preemption, or of a machine that never comes up
  std::int64_t announced_us = 0;            // when it will be lost, by the notice
  std::int64_t expires_us = 0;
  std::int64_t idle_after_us = 0, busy_until_us = 0;  // how long it may stand unused; 0: for ever
  std::int64_t terminated_us = 0, gone_us = 0;        // as the user asked, and when that has been done
  bool told_there = false;                            // the notice is to be had on the machine, too, and at once
  bool forgotten = false;                             // unknown to describe once it is gone

  std::int64_t idle_us() const;  // when it ends if nobody uses it any more; 0: never
  std::int64_t end_us() const;   // when it stops to be; 0: not foreseen
  bool alive(std::int64_t at_us) const;
  bool preempted(std::int64_t at_us) const;
};

// How often each thing has happened: what a torture must have seen.
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
  // capacity: nothing left there. `late_us`: the call takes effect so much later.
  Result<Machine> create(const CreateRequest& request, std::int64_t late_us);
  Machine describe(const std::string& id);
  std::vector<Machine> list(const std::string& tag_prefix);
  void terminate(const std::string& id);
  // state, http_status 404: there is none; invalid: no such type, or it is a spot machine; capacity: nothing left.
  Result<Machine> resize(const std::string& id, const std::string& type);
  std::vector<PricePoint> price_history(const OfferQuery& query, std::int64_t since_us) const;
  std::vector<Bill> bills(const BillQuery& query) const;

  // From now on calls succeed and nothing is lost; what has been thrown already stays.
  void end_faults() { options_.faults = {}, options_.scarcity = 0, options_.preemptions = 0; }
  // The machine is in use until then, if it is alive now; as its agent sees it.
  void use(const std::string& id, std::int64_t until_us);
  // Null: there is none of that id.
  const Box* find(const std::string& id) const;
  const std::vector<Box>& boxes() const { return boxes_; }
  Micros price_at(const Box& box, std::int64_t at_us) const;
  Micros bill_micros(const Box& box, std::int64_t until_us) const;

  // --- audit: what is true, whatever was told
  Micros bill_micros() const;
  int alive() const;
  int preempted() const;
  int escaped() const;                      // ended by the user between the notice and the preemption
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
  std::vector<Box> boxes_;  // by number: "sim-<number>" has the place number - 1
};

}  // namespace rille::provider::sim
