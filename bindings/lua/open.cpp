#include "bindings/lua/open.hpp"

#include "bindings/lua/verb.hpp"

namespace rille::lua {

std::vector<lua_CFunction> openers() {
  return {open_flow, open_run, open_args, open_log, open_offers, open_instance};
}

}  // namespace rille::lua
