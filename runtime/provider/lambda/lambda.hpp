// The provider `lambda`: GPU instances of Lambda Cloud, on demand. docs/manual/providers/lambda.md has its settings.
#pragma once

#include <memory>

#include "runtime/provider/provider.hpp"
#include "runtime/provider/providers.hpp"

namespace rille::provider {

Result<std::unique_ptr<Provider>> make_lambda_provider(Setup setup);

}  // namespace rille::provider
