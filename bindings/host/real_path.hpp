// Where a path leads. Any thread; these calls read the file system.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::host {

// Absolute, without "." and "..", and without looking at the file system.
std::string lexical_path(const std::string& path, const std::string& folder = {});

// Absolute, without "..", and with every symbolic link replaced by its target, as the kernel does it; components that
// do not exist stay as they are. With follow_last = false the last component itself is not followed: what os.remove and
// os.rename work on. A relative path is below `folder`; "": below the working directory.
// Error `invalid`: the path is empty or has a zero byte. Error `io`: more than 40 links.
Result<std::string> real_path(const std::string& path, bool follow_last = true, const std::string& folder = {});

// Whether both absolute paths are the same, or `path` is inside of the folder `root`.
bool is_below(std::string_view path, std::string_view root);

}  // namespace rille::host
