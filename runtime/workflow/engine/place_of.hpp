// The path on the instance to which `box:stage` copies a file.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::engine {

// Returns `to`. If `to` is a folder ("data/") and the source is a single file, appends the file's name, taken from
// `from`, a path or a URL. `local`: the file on this machine. Fails with `invalid` if the URL has no file name.
Result<std::string> place_of(const std::string& from, const std::string& local, const std::string& to);

}  // namespace rille::engine
