// The tag that a machine has from its creation on: rille-<install>-<lease>-g<generation>-x<expiry, Unix seconds>. If
// the journal is lost, the tag still tells which lease a machine belongs to.
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
// Parses a machine's tag; nullopt if it is not a tag of this installation.
std::optional<Tag> read_tag(const std::string& install, std::string_view tag);

// The wall time from which on a list of machines without the lease's machine proves that the lease's request created
// none. Before that, the request may be in progress, or the machine not visible yet.
std::int64_t absence_proven_us(const Lease& lease, const provider::Traits& traits);

// The provider's machines with the tag. Only the region of the lease's offer is asked, because a tag belongs to one
// request; so other regions that do not answer do not matter.
Async<std::vector<provider::Machine>> machines_of(provider::Provider* provider, std::string region, std::string tag,
                                                  CancelToken token);

}  // namespace rille::lease
