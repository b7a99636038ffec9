// The security group that allows SSH, created for one machine if the settings name none. It has the machine's tag and a
// name derived from it, so that creating it again finds it. It is deleted after the machine and its interface: Azure
// refuses to delete a group in use. It is free.
#include "runtime/workflow/provider/azure/arm.hpp"

namespace rille::provider::azure {

namespace {
constexpr int first_priority = 100;  // the lowest number allowed, evaluated first
}

// Azure's default rules allow traffic from the own network and deny the rest.
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
