// The provider of Amazon's EC2: machines on demand and spot, in the regions of its settings. A machine is one instance
// with its disk, which ends with it. docs/manual/providers/aws.md.
#pragma once

#include <memory>

#include "runtime/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, zone, image, subnet, security_group, instance_profile, disk, kms_key, endpoints. config: they are
// wrong.
Result<std::unique_ptr<Provider>> make_aws_provider(Setup setup);

}  // namespace rille::provider
