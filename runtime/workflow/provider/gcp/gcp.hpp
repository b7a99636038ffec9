// The provider of Google Compute Engine: on demand and spot, in the configured regions.
// docs/manual/providers/gcp.md.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, project, zone, image, vpc (or network), subnet, security_group, ssh_from, public_address, disk,
// disk_kind, kms_key, reservation, credentials, endpoints. Fails with kind config on a wrong setting.
Result<std::unique_ptr<Provider>> make_gcp_provider(Setup setup);
NoticeSpec gcp_notice(const std::string& metadata);  // `metadata`: base URL of the metadata service

inline constexpr const char* gcp_variables[] = {
    "GOOGLE_CLOUD_PROJECT",           "CLOUDSDK_CORE_PROJECT", "CLOUDSDK_COMPUTE_REGION",    "CLOUDSDK_COMPUTE_ZONE",
    "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG",       "CLOUDSDK_ACTIVE_CONFIG_NAME"};
inline constexpr FarRefusal gcp_refusals[] = {{"REGION_RESOURCE_POOL_EXHAUSTED", Reach::region}};
inline constexpr const char* gcp_options[] = {"reservation", "image"};
inline constexpr Manner gcp_manner{false, gcp_variables, gcp_refusals, gcp_options, gcp_notice, 0, {}, true};

}  // namespace rille::provider
