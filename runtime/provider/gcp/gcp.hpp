// The provider of Google Compute Engine: on demand and spot, in the regions of its settings.
// docs/manual/providers/gcp.md.
#pragma once

#include <memory>

#include "runtime/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, project, zone, image, network, subnet, disk, disk_kind, credentials, endpoints.
// config: they are wrong.
Result<std::unique_ptr<Provider>> make_gcp_provider(Setup setup);

}  // namespace rille::provider
