// The provider of Alibaba Cloud's ECS: pay as you go and spot, in the configured regions.
// docs/manual/providers/alibaba.md.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, zone, image, subnet, security_group, public_address, disk, disk_kind, kms_key, reservation,
// reserved_prices, endpoints. Fails with kind config on a wrong setting.
Result<std::unique_ptr<Provider>> make_alibaba_provider(Setup setup);
NoticeSpec alibaba_notice(const std::string& metadata);  // `metadata`: base URL of the metadata service

inline constexpr const char* alibaba_variables[] = {"ALIBABA_CLOUD_REGION_ID",        "ALIBABA_CLOUD_PROFILE",
                                                    "ALIBABA_CLOUD_CREDENTIALS_FILE", "ALIBABA_CLOUD_ACCESS_KEY_ID",
                                                    "ALIBABA_CLOUD_ROLE_ARN",         "ALIBABA_CLOUD_ECS_METADATA"};
inline constexpr FarRefusal alibaba_refusals[] = {{"Zone.NotOnSale", Reach::region},
                                                  {"OperationDenied.ZoneNotAllowed", Reach::region},
                                                  {"OperationDenied.ZoneSystemCategoryNotMatch", Reach::region},
                                                  {"InvalidAccountStatus.NotEnoughBalance", Reach::account},
                                                  {"Account.Arrearage", Reach::account}};
inline constexpr const char* alibaba_options[] = {"reservation", "image"};
inline constexpr const char* alibaba_secrets[] = {"ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
                                                  "ALIBABA_CLOUD_SECURITY_TOKEN"};
// `true` is Manner::narrow: a query gets prices of at most 100 types per region, so its answer serves no other query.
inline constexpr Manner alibaba_manner{
    true, alibaba_variables, alibaba_refusals, alibaba_options, alibaba_notice, 0, alibaba_secrets, true};

}  // namespace rille::provider
