// The provider of Alibaba Cloud's ECS: pay as you go and spot, in the regions of its settings.
// docs/manual/providers/alibaba.md.
#pragma once

#include <memory>

#include "runtime/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, zone, image, subnet, security_group, disk, disk_kind, kms_key, endpoints. config: they are wrong.
Result<std::unique_ptr<Provider>> make_alibaba_provider(Setup setup);

}  // namespace rille::provider
