// The provider of Huawei Cloud's ECS: pay per use and spot, in the regions of its settings.
// docs/manual/providers/huawei.md.
#pragma once

#include <memory>

#include "runtime/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, project, zone, image, vpc, subnet, security_group, disk, disk_kind, address_kind, endpoints.
// config: they are wrong.
Result<std::unique_ptr<Provider>> make_huawei_provider(Setup setup);

}  // namespace rille::provider
