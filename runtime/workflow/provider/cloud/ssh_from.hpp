// The setting ssh_from: the addresses from which SSH is allowed by the security group or firewall that a driver
// creates. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"

namespace rille::provider::cloud {

// The IPv4 ranges in the setting. A null setting gives the range of all addresses. Error config: an empty list, or not
// a range.
Result<std::vector<std::string>> read_ssh_from(const std::string& provider, const Value& setting);

}  // namespace rille::provider::cloud
