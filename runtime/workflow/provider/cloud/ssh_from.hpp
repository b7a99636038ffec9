// ssh_from: from where ssh reaches a machine through the group, the firewall, that a driver makes for it; the same in
// the settings of each that makes one.
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"

namespace rille::provider::cloud {

// The ranges of IPv4 addresses that a setting names; null: all addresses. config: it names none, or something else.
Result<std::vector<std::string>> read_ssh_from(const std::string& provider, const Value& setting);

}  // namespace rille::provider::cloud
