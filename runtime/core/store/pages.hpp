// The pages of mapped files: how much of them stays in this process's memory, and whether the files still have them.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::store {

// Drops the pages of this part of a mapped file from memory. The next access reads them again from the file or from the
// page cache.
void forget_pages(std::string_view part);

// Error io: the file was truncated after it was mapped, so reading this part would raise SIGBUS. Detected on Linux 5.14
// and newer; a truncation during the read itself is not detected: where scripts
// run meanwhile, read() instead (docs/design/threats.md names the exceptions).
Result<> check_pages(std::string_view part, const std::string& path);

}  // namespace rille::store
