// Pages of mapped files in this process's memory.
#pragma once

#include <string_view>

namespace rille::store {

// Drops the resident pages of this part of a mapped file. The next access reads them again from the file or the page
// cache.
void forget_pages(std::string_view part);

}  // namespace rille::store
