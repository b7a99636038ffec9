// The provider of Tencent Cloud's CVM: pay as you go and spot, in the configured regions.
// docs/manual/providers/tencent.md.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, zone, image, vpc, subnet, security_group, public_address, disk, disk_kind, currency, endpoints.
// Fails with kind config on a wrong setting.
Result<std::unique_ptr<Provider>> make_tencent_provider(Setup setup);
NoticeSpec tencent_notice(const std::string& metadata);  // `metadata`: base URL of the metadata service

inline constexpr const char* tencent_variables[] = {"TENCENTCLOUD_REGION", "TENCENTCLOUD_SECRET_ID", "TKE_ROLE_ARN",
                                                    "TCCLI_PROFILE"};
inline constexpr FarRefusal tencent_refusals[] = {{"UnsupportedOperation.SpotUnsupportedRegion", Reach::region},
                                                  {"InvalidAccount.InsufficientBalance", Reach::account}};
inline constexpr const char* tencent_secrets[] = {"TENCENTCLOUD_SECRET_ID", "TENCENTCLOUD_SECRET_KEY",
                                                  "TENCENTCLOUD_TOKEN"};
inline constexpr const char* tencent_options[] = {"image"};
inline constexpr Manner tencent_manner{
    false, tencent_variables, tencent_refusals, tencent_options, tencent_notice, 0, tencent_secrets, true};

}  // namespace rille::provider
