// The machine type of an offer, as in the provider's console: "p4d.24xlarge" for "us-east-1/p4d.24xlarge:spot". The
// argument of Provider::resize, and the value of details.type of a Machine. Pure; any thread.
#pragma once

#include <string>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

std::string type_of(const Offer& offer);

}  // namespace rille::provider
