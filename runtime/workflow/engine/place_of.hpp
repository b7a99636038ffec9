// Where `box:stage` puts a file on an instance.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::engine {

// `to` as it was given; a single file goes into a folder ("data/") under its own name, which `from`, a path or an
// address, tells. `local`: where it lies here. invalid: the address has no name for it.
Result<std::string> place_of(const std::string& from, const std::string& local, const std::string& to);

}  // namespace rille::engine
