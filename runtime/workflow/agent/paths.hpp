// Checks the paths that a runner names on an instance: they are relative to a root directory and must not leave it by
// "..". This guards against mistakes only: the instance's programs run as the same user and can use any path.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::agent {

// Returns root + "/" + path; "." gives the root itself. Fails with `invalid` if `path` is absolute or empty, contains
// ".." or a NUL, or is longer than 4096 bytes.
Result<std::string> inside(const std::string& root, const std::string& path);

}  // namespace rille::agent
