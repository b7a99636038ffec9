// Cloud: the state of the simulated cloud: machines, bills, counters for tests. It outlives the simulated processes
// that use it. It has no timers: all times of a machine's life are drawn at random when the machine is created, and the
// state at any instant is computed from them. The provider class in sim.hpp adds latency and faults. One thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/sim/market.hpp"
#include "runtime/workflow/provider/sim/options.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::provider::sim {

// A period in which a machine, later resized, had another type; for billing.
struct Stint {
  OfferParts place;
  Micros price_micros_per_hour = 0;
  std::int64_t from_us = 0, to_us = 0;
};

// A machine, and when each event of its life happens. Times are microseconds of the cloud's clock; 0: never.
struct Box {
  std::string id, tag, token;
  OfferParts place;
  Micros price_micros_per_hour = 0;  // price in the machine's first hour
  std::int64_t asked_us = 0;         // when create was called
  std::int64_t landed_us = 0;        // when the create call took effect
  std::int64_t shown_us = 0;         // when list and describe may first return the machine
  std::int64_t live_us = 0;          // when the machine became live with its current type
  std::int64_t stopped_us = 0;       // last stop for a resize, which ended the processes
  std::vector<Stint> before;
  std::int64_t notice_us = 0, lost_us = 0;  // preemption notice; loss of the machine
  std::int64_t announced_us = 0;            // when the machine will be lost, as the notice says
  std::int64_t expires_us = 0;
  std::int64_t idle_after_us = 0, busy_until_us = 0;  // idle limit (0: none); end of the machine's current use
  std::int64_t terminated_us = 0, gone_us = 0;        // time of the terminate call; time of its effect
  bool told_there = false;                            // the agent on the machine sees the notice at once
  bool forgotten = false;                             // once gone, describe treats the machine as unknown
  bool is_volume = false, shared = false;             // a disk; several machines may have it
  std::vector<std::string> volumes;                   // ids of the volumes that the machine has

  std::int64_t idle_us() const;  // when the idle limit ends the machine if it stays unused; 0: never
  std::int64_t end_us() const;   // when the machine ends for any reason; 0: not known yet
  bool alive(std::int64_t at_us) const;
  bool preempted(std::int64_t at_us) const;
};

// How often each event happened, so that a stress test can check that it met every kind of fault.
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
  // The machine exists only `late_us` after the call. Error capacity: sold out.
  Result<Machine> create(const CreateRequest& request, std::int64_t late_us);
  Machine describe(const std::string& id);
  std::vector<Machine> list(const std::string& tag_prefix);
  Result<> terminate(const std::string& id);  // state: a volume that a machine has
  std::vector<Offer> volume_offers(const VolumeWish& wish) const;
  // Errors: state with http_status 404: no such machine; invalid: no such type, or a spot machine; capacity: sold out.
  Result<Machine> resize(const std::string& id, const std::string& type);
  std::vector<PricePoint> price_history(const OfferQuery& query, std::int64_t since_us) const;
  std::vector<Bill> bills(const BillQuery& query) const;

  // From now on calls succeed and new machines are not lost; existing machines keep their drawn times of loss.
  void end_faults() { options_.faults = {}, options_.scarcity = 0, options_.preemptions = 0; }
  // Marks a live machine as in use until `until_us`, as an agent that runs a job would.
  void use(const std::string& id, std::int64_t until_us);
  // Null: no such machine.
  const Box* find(const std::string& id) const;
  const std::vector<Box>& boxes() const { return boxes_; }
  Micros price_at(const Box& box, std::int64_t at_us) const;
  Micros bill_micros(const Box& box, std::int64_t until_us) const;

  // --- for tests: the true state, which responses may misreport
  Micros bill_micros() const;
  int alive() const;
  int preempted() const;
  int escaped() const;                      // machines that the user terminated between notice and preemption
  int volumes() const;                      // disks that cost money
  std::map<std::string, int> made() const;  // number of machines created per tag; each lease generation has a tag
  Counts counts;

 private:
  std::vector<Box>::iterator locate(const std::string& id);
  Machine view(const Box& box);
  std::int64_t stale_us();
  void foresee(Box& box);
  bool has_none(const OfferParts& place) const;
  Offer offer_of(const OfferParts& place) const;
  const Box* user_of(const Box& volume) const;
  Result<> check_volumes(const std::vector<Mount>& mounts, const OfferParts& place);
  Result<Machine> create_volume(const CreateRequest& request, std::int64_t late_us);

  const Clock& clock_;
  Options options_;
  Dice dice_;
  Market market_;
  std::int64_t origin_us_;
  std::vector<Box> boxes_;  // the machine with id "sim-<n>" is at index n - 1
};

}  // namespace rille::provider::sim
