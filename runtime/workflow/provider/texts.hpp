// The JSON of a request and of a machine for the journal, written without building a Value.
#pragma once

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

std::string text_of(const CreateRequest& request);
std::string text_of(const Machine& machine);

}  // namespace rille::provider
