#include "bindings/lua/open.hpp"

#include "bindings/host/keys.hpp"
#include "bindings/lua/compute/tensor.hpp"
#include "bindings/lua/workflow/verb.hpp"

namespace rille::lua {

std::vector<lua_CFunction> openers() {
  return {open_flow,  open_run,    open_args,   open_log,  open_offers, open_instance,
          open_store, open_volume, open_tensor, open_gpus, open_texts,  open_stored_checkpoints};
}

int open_as_global(lua_State* L) {
  get_registry(L, &key_rille);
  set_global(L, "rille");
  return 0;
}

}  // namespace rille::lua
