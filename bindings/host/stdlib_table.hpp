// The standard library's Lua modules, embedded in the binary.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace rille::host {

std::optional<std::string_view> stdlib_source(std::string_view module);  // "rille.nn"
std::vector<std::string_view> stdlib_names();                            // sorted

}  // namespace rille::host
