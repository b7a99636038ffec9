// What a person grants to a run at the command: by --grant, or by a file beside the script.
#pragma once

#include <string>
#include <vector>

#include "bindings/host/grants.hpp"

namespace rille::cli {

// The words of --grant; without any, the file beside the script ("train.grants.json" for "train.lua"), whose folders
// are relative to its own folder; without one, everything. Error `invalid`: an unknown grant, or a file that is not
// JSON.
Result<host::Grants> grants_of(const std::string& script, const std::vector<std::string>& words);

}  // namespace rille::cli
