// The tag that a machine bears from its first instant: rille-<install>-<lease>-g<generation>-x<expiry, Unix seconds>.
// It alone tells whose a machine is, when the journal is lost.
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
// What the machines of one cluster of a run have in common (provider/rent_options.hpp); it is no tag.
std::string cluster_of(const std::string& install, const std::string& run, const std::string& name);
// Nothing for what no Rille has written.
std::optional<Tag> read_tag(const std::string& install, std::string_view tag);

// What the row, found by the tag and read after the machine was listed, says of the machine.
Account account_of(const std::optional<Lease>& row, const provider::Machine& machine, const Tag& tag);

// When a list without the machine proves that the lease's request has made none: until then it may be under way, or
// made and not shown.
std::int64_t absence_proven_us(const Lease& lease, const provider::Traits& traits);

// What bears the lease's tag: a tag belongs to one request, and so to the region of its offer. Others are not asked,
// and need not be in order.
Async<std::vector<provider::Machine>> machines_of(provider::Provider* provider, std::string region, std::string tag,
                                                  CancelToken token);

}  // namespace rille::lease
