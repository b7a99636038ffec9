// Volume: the result of rille.volume. Private to bindings/lua/workflow.
#pragma once

#include <string>

#include "bindings/lua/workflow/verb.hpp"

namespace rille::lua {

struct Volume {
  std::string id, name;  // id: of its lease
};

// Reads the options of a rent, a table at `index`: data, but for `volumes`, whose volumes become the ids of their
// leases.
Result<Value> read_rent_options(lua_State* L, int index, const char* what);

}  // namespace rille::lua
