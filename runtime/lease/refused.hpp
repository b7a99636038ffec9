// What renting has learnt about offers while it looks for one. Private to runtime/lease.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "runtime/lease/manager.hpp"

namespace rille::lease {

// Offers that have refused this lease, which are not asked again, and the regions that had nothing left or took the
// last machine away, which are asked last; `last` of all those from which that machine was.
struct Manager::Refused {
  std::set<std::pair<std::string, std::string>> offers, regions, last;

  void add(const provider::Offer& o, const Error& why) {
    offers.emplace(o.provider, o.id);
    if (why.kind == ErrorKind::capacity) regions.emplace(o.provider, o.region);
  }
};

}  // namespace rille::lease
