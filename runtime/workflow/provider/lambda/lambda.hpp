// The provider `lambda`: GPU instances of Lambda Cloud, on demand. Settings: see docs/manual/providers/lambda.md.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/provider.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

Result<std::unique_ptr<Provider>> make_lambda_provider(Setup setup);

inline constexpr const char* lambda_variables[] = {"LAMBDA_API_KEY"};
inline constexpr FarRefusal lambda_refusals[] = {{"global/account-inactive", Reach::account},
                                                 {"global/quota-exceeded", Reach::account}};
inline constexpr const char* lambda_options[] = {"image"};
inline constexpr Manner lambda_manner{false, lambda_variables, lambda_refusals, lambda_options, nullptr,
                                      0,     lambda_variables};

}  // namespace rille::provider
