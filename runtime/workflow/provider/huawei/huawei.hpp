// The provider of Huawei Cloud's ECS: pay per use and spot, in the configured regions.
// docs/manual/providers/huawei.md.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, project, zone, image, vpc, subnet, security_group, public_address, disk, disk_kind,
// address_kind, kms_key, reserved_prices, endpoints. Fails with kind config on a wrong setting.
Result<std::unique_ptr<Provider>> make_huawei_provider(Setup setup);
NoticeSpec huawei_notice(const std::string& metadata);  // `metadata`: base URL of the metadata service

inline constexpr const char* huawei_variables[] = {"HUAWEICLOUD_SDK_REGION_ID", "HUAWEICLOUD_SDK_PROJECT_ID",
                                                   "HUAWEICLOUD_SDK_CREDENTIALS_FILE", "HUAWEICLOUD_SDK_AK",
                                                   "HUAWEICLOUD_SDK_IDP_ID"};
inline constexpr const char* huawei_secrets[] = {"HUAWEICLOUD_SDK_AK", "HUAWEICLOUD_SDK_SK",
                                                 "HUAWEICLOUD_SDK_SECURITY_TOKEN"};
inline constexpr const char* huawei_options[] = {"image"};
// `true` is Manner::narrow: a query gets prices of at most 100 types per region, so its answer serves no other query.
inline constexpr Manner huawei_manner{true, huawei_variables, {},  huawei_options, huawei_notice,
                                      0,    huawei_secrets,   true};

}  // namespace rille::provider
