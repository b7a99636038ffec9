// The pages of mapped files: how much of them stays in this process's memory, and whether they are still there.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::store {

// Drops the pages of this part of a mapped file from memory. The next access reads them again from the file or from the
// page cache.
void forget_pages(std::string_view part);

// Error io: the file was truncated since it was mapped, and reading this part would raise SIGBUS. Found on Linux 5.14
// and newer; a file that is truncated while it is read is not found.
Result<> check_pages(std::string_view part, const std::string& path);

}  // namespace rille::store
