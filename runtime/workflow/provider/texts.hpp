// What the journal keeps of a request and of a machine: the text of their Values, without making these.
#pragma once

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

std::string text_of(const CreateRequest& request);
std::string text_of(const Machine& machine);

}  // namespace rille::provider
