// The state of rents in progress: what each rent looks for, and what it has learned about offers. Private to
// runtime/workflow/lease.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/lease/owner.hpp"
#include "runtime/workflow/lease/parts.hpp"
#include "runtime/workflow/lease/proof.hpp"
#include "runtime/workflow/lease/terms.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "runtime/workflow/provider/reach.hpp"

namespace rille::lease {

using provider::is_definitive;

inline constexpr const char* price_jump = "price_jump";  // error code if only much more expensive offers are left
inline constexpr Micros jump_at = 2;                     // an offer above this multiple of the first price is skipped

// What one rent has learned about offers. `offers`: offers that refused the rent; `blocks`: refusals that apply beyond
// one offer; neither is tried again. `regions`: regions without stock, or where the last machine was lost; tried late.
// `last`: the offer of the lost machine; tried last. `listed`: the list of offers, which is reused for the next choice.
struct Manager::Refused {
  Refused() = default;  // not an aggregate: see loop/task.hpp
  struct Block {
    provider::Reach reach;
    provider::Offer offer;
  };
  using Names = std::set<std::pair<std::string, std::string>>;
  Names offers, regions, last;
  std::vector<Block> blocks;                // refusals that apply to more than the offer that was tried
  Micros first_micros = 0;                  // the best offer's hourly price before any refusal; 0: unknown, or free
  const provider::Offer* dearer = nullptr;  // the cheapest offer left, if all offers left exceed the price limit
  Offers listed;                            // the list of offers; null: not queried yet
  std::int64_t listed_us = 0;

  bool any() const {
    return !offers.empty() || !regions.empty() || !last.empty() || !blocks.empty() || first_micros != 0;
  }

  static bool has(const Names& names, const std::string& provider, const std::string& name) {
    return !names.empty() && names.contains({provider, name});
  }

  void add(const provider::Offer& o, const Error& why) {
    offers.emplace(o.provider, o.id);
    if (why.kind == ErrorKind::capacity) regions.emplace(o.provider, o.region);
    const provider::Reach reach = provider::reach_of(why);
    if (reach != provider::Reach::offer) blocks.push_back({reach, o});
  }

  bool covers(const provider::Offer& o) const {
    const auto blocks_it = [&o](const Block& b) {
      const provider::Offer& was = b.offer;
      if (o.provider != was.provider) return false;
      if (b.reach == provider::Reach::account) return true;
      if (o.region != was.region) return false;
      if (b.reach == provider::Reach::region) return true;
      return o.gpu == was.gpu && o.spot == was.spot && o.gpu_count >= was.gpu_count && o.vcpus >= was.vcpus;
    };
    return has(offers, o.provider, o.id) || std::any_of(blocks.begin(), blocks.end(), blocks_it);
  }
};

// Offers that recently had no stock for some lease of this process. Other offers are preferred until an entry expires.
struct Manager::Recent {
  static constexpr std::int64_t lasts_us = 180'000'000;
  static constexpr std::size_t most = 1000;
  std::map<std::pair<std::string, std::string>, std::int64_t> until_us;

  void add(const provider::Offer& o, const Error& why, std::int64_t now_us) {
    if (why.kind != ErrorKind::capacity) return;
    std::erase_if(until_us, [now_us](const auto& one) { return one.second <= now_us; });
    if (until_us.size() < most) until_us[{o.provider, o.id}] = now_us + lasts_us;
  }
  bool has(const provider::Offer& o, std::int64_t now_us) const {
    if (until_us.empty()) return false;
    const auto at = until_us.find({o.provider, o.id});
    return at != until_us.end() && at->second > now_us;
  }
};

// One rent, from its options to the machine. Shared by the coroutines that work on it, so that their frames are small.
struct Manager::Renting {
  Renting() = default;  // not an aggregate: see loop/task.hpp
  Acquire request;
  std::string id;  // the lease's id
  Event event;
  CancelToken token;
  Refused refused;
  Shared lease;  // the lease's newest generation; null: the lease has no row yet
};

// Offer queries in flight, by Terms::asks: rents with the same query wait for one answer.
struct Manager::Search {
  struct Asking {
    std::vector<Future<bool>> waiting;
    std::optional<Result<Offers>> answer;  // empty after the query: the asking coroutine was cancelled or destroyed
  };
  std::map<std::string, std::shared_ptr<Asking>> asking;
  // The best offer of a list for a rent without refusals; identical rents reuse it.
  struct First {
    Wish wish;
    Offers listed;
    const provider::Offer* best = nullptr;
    Micros micros = 0;  // Refused::first_micros
  } first;
  std::shared_ptr<Owners> owners = std::make_shared<Owners>();
  Proofs proofs;
  std::map<std::string, Ending> endings;          // lease id -> when its costs ended, until the journal has it
  std::map<std::string, std::set<Place>> places;  // run id -> the places where it sent create calls
};

}  // namespace rille::lease
