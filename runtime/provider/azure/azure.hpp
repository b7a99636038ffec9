// The provider of Azure's virtual machines: pay as you go and spot, in the regions of its settings.
// docs/manual/providers/azure.md.
#pragma once

#include <memory>

#include "runtime/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, subscription, resource_group, image, subnet, security_group, zone, disk, disk_kind, endpoints.
// config: they are wrong.
Result<std::unique_ptr<Provider>> make_azure_provider(Setup setup);

}  // namespace rille::provider
