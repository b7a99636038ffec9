// Resolves paths. Any thread; real_path reads the file system.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::host {

// Absolute, without "." and ".."; does not read the file system.
std::string lexical_path(const std::string& path, const std::string& folder = {});

// Error `invalid`: the path is empty, has a zero byte, or is longer than the system takes.
Result<> check_path(const std::string& path);

// Absolute, without "..", and with every symbolic link replaced by its target, as the kernel does; components that do
// not exist stay. With follow_last = false the last component is not followed, as in os.remove and os.rename. A
// relative path starts at `folder`; "": at the working directory.
// Errors: as check_path; `io`: more than 40 links.
Result<std::string> real_path(const std::string& path, bool follow_last = true, const std::string& folder = {});

// Whether `path` is `root` or inside `root`. Both are absolute.
bool is_below(std::string_view path, std::string_view root);

}  // namespace rille::host
