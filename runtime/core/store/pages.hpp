// Pages of mapped files in this process's memory.
#pragma once

#include <string_view>

namespace rille::store {

// Lets go of the pages on which this part of a mapped file lies. They are taken from the file, or from the system's
// cache of it, when they are looked at again.
void forget_pages(std::string_view part);

}  // namespace rille::store
