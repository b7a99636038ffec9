// Where `box:stage` puts a file on an instance.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::engine {

// Returns `to`; for a single file into a folder ("data/"), with the file's name appended, taken from `from`, a path or
// an address. `local`: the file's path here. invalid: the address has no file name.
Result<std::string> place_of(const std::string& from, const std::string& local, const std::string& to);

}  // namespace rille::engine
