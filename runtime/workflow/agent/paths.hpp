// Paths that a runner names on an instance: relative to a root, and not able to leave it by "..". A guard against
// mistakes, not a security boundary: the instance's programs run as the same user.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::agent {

// root + "/" + path. invalid: absolute, with "..", empty, with a NUL, or over 4096 bytes. "." is the root itself.
Result<std::string> inside(const std::string& root, const std::string& path);

}  // namespace rille::agent
