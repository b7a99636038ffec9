// The name that its provider's console gives the type of machine behind an offer: "p4d.24xlarge" of
// "us-east-1/p4d.24xlarge:spot". What Provider::resize takes, and details.type of a Machine says. Pure; any thread.
#pragma once

#include <string>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

std::string type_of(const Offer& offer);

}  // namespace rille::provider
