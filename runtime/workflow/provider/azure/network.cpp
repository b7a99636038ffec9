// The security group that allows SSH, created for one machine if the settings name none. Its tag is the machine's and
// its name derives from that tag, so that a repeated create finds the group. It is free, and is deleted after the
// machine and the network interface, since Azure refuses to delete a group in use.
#include "runtime/workflow/provider/azure/arm.hpp"

namespace rille::provider::azure {

namespace {
constexpr int first_priority = 100;  // Azure's lowest rule number, which is evaluated first
}

// One rule allows SSH; Azure's default rules allow traffic from the same virtual network and deny the rest.
Value lets_ssh_in(const std::vector<std::string>& from) {
  Value rule, out;
  rule.set("protocol", "Tcp").set("access", "Allow").set("direction", "Inbound").set("priority", first_priority);
  if (from.size() == 1) rule.set("sourceAddressPrefix", from.front());
  else rule.set("sourceAddressPrefixes", Value::Array(from.begin(), from.end()));
  rule.set("sourcePortRange", "*").set("destinationAddressPrefix", "*").set("destinationPortRange", "22");
  out.set("securityRules", Value::Array{Value().set("name", "ssh").set("properties", std::move(rule))});
  return out;
}

}  // namespace rille::provider::azure
