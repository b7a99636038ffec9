// The provider of Tencent Cloud's CVM: pay as you go and spot, in the regions of its settings.
// docs/manual/providers/tencent.md.
#pragma once

#include <memory>

#include "runtime/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, zone, image, vpc, subnet, security_group, disk, disk_kind, endpoints. config: they are wrong.
Result<std::unique_ptr<Provider>> make_tencent_provider(Setup setup);

}  // namespace rille::provider
