// The provider of Amazon's EC2: machines on demand and spot, in the configured regions. A machine is one instance with
// its disk, which is deleted with it. docs/manual/providers/aws.md.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// Settings: regions, zone, image, vpc, subnet, security_group, ssh_from, public_address, instance_profile, disk,
// kms_key, reservation, capacity_block, endpoints. Fails with kind config on a wrong setting.
Result<std::unique_ptr<Provider>> make_aws_provider(Setup setup);
NoticeSpec aws_notice(const std::string& metadata);  // `metadata`: base URL of the metadata service

inline constexpr const char* aws_variables[] = {"AWS_REGION",
                                                "AWS_DEFAULT_REGION",
                                                "AWS_DEFAULT_PROFILE",
                                                "AWS_PROFILE",
                                                "AWS_CONFIG_FILE",
                                                "AWS_SHARED_CREDENTIALS_FILE",
                                                "AWS_ACCESS_KEY_ID",
                                                "AWS_ROLE_ARN",
                                                "AWS_WEB_IDENTITY_TOKEN_FILE",
                                                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                                "AWS_CONTAINER_CREDENTIALS_FULL_URI"};
inline constexpr FarRefusal aws_refusals[] = {{"OptInRequired", Reach::region},
                                              {"PendingVerification", Reach::account},
                                              {"InstanceLimitExceeded", Reach::offer},
                                              {"VolumeLimitExceeded", Reach::region}};
inline constexpr const char* aws_options[] = {"reservation", "image"};
inline constexpr const char* aws_secrets[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                                              "AWS_CONTAINER_AUTHORIZATION_TOKEN"};
// `true` is Manner::narrow: a query gets prices of at most 100 types per region, so its answer serves no other query.
inline constexpr Manner aws_manner{true, aws_variables, aws_refusals, aws_options, aws_notice, 0, aws_secrets, true};

}  // namespace rille::provider
