// Controls how much of a mapped file stays in this process's memory.
#pragma once

#include <string_view>

namespace rille::store {

// Drops the pages of this part of a mapped file from memory. The next access reads them again from the file or from the
// page cache.
void forget_pages(std::string_view part);

}  // namespace rille::store
