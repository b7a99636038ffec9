// The Lua modules of the standard library, embedded in the binary by stdlib/CMakeLists.txt. Any thread may read them;
// the text lives as long as the program. stdlib/nn/gpt.lua is named "rille.nn.gpt", stdlib/nn/init.lua "rille.nn".
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rille::host {

struct StdlibModule {
  std::string_view name;
  std::string_view source;
};

std::span<const StdlibModule> stdlib_modules();                          // sorted by name
std::optional<std::string_view> stdlib_source(std::string_view module);  // the module's source; empty: no such module
std::vector<std::string_view> stdlib_names();                            // sorted names of all modules

}  // namespace rille::host
