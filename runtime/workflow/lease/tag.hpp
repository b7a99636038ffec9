// The tag that a machine has from its creation on: rille-<install>-<lease>-g<generation>-x<expiry, Unix seconds>. It
// alone identifies a machine's lease when the journal is lost.
#pragma once

#include <optional>
#include <string>

#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

struct Tag {
  std::string lease;
  std::int64_t generation = 0, expires_us = 0;
};

std::string tag_prefix(const std::string& install);
std::string tag_of(const std::string& install, const Lease& lease);
// The common name of the machines of one cluster of a run (provider/rent_options.hpp); not a tag.
std::string cluster_of(const std::string& install, const std::string& run, const std::string& name);
// nullopt if it is not a Rille tag.
std::optional<Tag> read_tag(const std::string& install, std::string_view tag);

// How the row, found by the tag and read after the machine was listed, accounts for the machine.
Account account_of(const std::optional<Lease>& row, const provider::Machine& machine, const Tag& tag);

// When a list without the machine proves that the lease's request created none. Until then the request may be in
// progress, or its machine not visible yet.
std::int64_t absence_proven_us(const Lease& lease, const provider::Traits& traits);

// The machines with the tag. A tag belongs to one request, and so to its offer's region; other regions are not asked
// and may be out of order.
Async<std::vector<provider::Machine>> machines_of(provider::Provider* provider, std::string region, std::string tag,
                                                  CancelToken token);

}  // namespace rille::lease
