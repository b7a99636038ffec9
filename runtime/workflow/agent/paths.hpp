// Paths that a runner names on an instance: relative to a root, without a way out of it by name. Not a wall against the
// instance's own programs, which run as the same user: a guard against mistakes.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::agent {

// root + "/" + path. invalid: absolute, with "..", empty, with a NUL, or over 4096 bytes. "." is the root itself.
Result<std::string> inside(const std::string& root, const std::string& path);

}  // namespace rille::agent
