// The grants that the command gives to a run: from --grant, or from a file beside the script.
#pragma once

#include <string>
#include <vector>

#include "bindings/host/grants.hpp"

namespace rille::cli {

// Parses the words of --grant. Without any, reads the file beside the script ("train.grants.json" for "train.lua"),
// whose relative folders start at its own folder. Without that file, grants everything. Error `invalid`: an unknown
// grant, or a file that is not JSON.
Result<host::Grants> grants_of(const std::string& script, const std::vector<std::string>& words);

}  // namespace rille::cli
