// The provider of Azure's virtual machines: pay as you go and spot, in the configured regions.
// docs/manual/providers/azure.md.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, subscription, resource_group, image, subnet, security_group, ssh_from, zone, disk, disk_kind,
// kms_key, reservation, public_address, endpoints. Fails with kind config on a wrong setting.
Result<std::unique_ptr<Provider>> make_azure_provider(Setup setup);
NoticeSpec azure_notice(const std::string& metadata);  // `metadata`: base URL of the metadata service

inline constexpr const char* azure_variables[] = {"AZURE_SUBSCRIPTION_ID", "AZURE_DEFAULTS_LOCATION",
                                                  "AZURE_DEFAULTS_GROUP", "AZURE_TENANT_ID", "AZURE_CLIENT_ID"};
inline constexpr FarRefusal azure_refusals[] = {{"AzureSpotFeatureNotEnabledForSubscription", Reach::account}};
inline constexpr const char* azure_options[] = {"reservation", "image"};
inline constexpr const char* azure_secrets[] = {"AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD"};
// `true` is Manner::narrow: a query gets prices of at most 100 sizes per region, so its answer serves no other query.
inline constexpr Manner azure_manner{
    true, azure_variables, azure_refusals, azure_options, azure_notice, 0, azure_secrets, true};

}  // namespace rille::provider
