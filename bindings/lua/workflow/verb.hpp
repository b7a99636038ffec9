// The data that every `rille` verb needs first: the calling fiber, the fiber's run, and the position in the script.
#pragma once

#include "bindings/host/host.hpp"
#include "bindings/host/open.hpp"
#include "runtime/core/store/objects/url.hpp"
#include "runtime/workflow/engine/run.hpp"

namespace rille::objects {
class ObjectStore;
}

namespace rille::lua {

using namespace rille::host;  // these files use names of rille::host in nearly every line

// The script position "train.lua:12", computed on demand. After a tail call, `return rille.step(..)`, the calling
// line is gone from the stack; the position is then the start of the function passed to the verb.
struct SourcePosition {
  lua_State* L;
  operator std::string() const;  // NOLINT: implicit by design
};

struct Verb {
  LuaHost& host;
  engine::Run& run;
  Fiber& fiber;
  FiberId id;
  SourcePosition source;
};

// durable: the verb is journaled, and refused inside a step's body, because a step is recorded as a whole. Outside a
// run begin_verb raises `state`.
enum class Verbs { durable, anywhere };
Verb begin_verb(lua_State* L, const char* name, Verbs kind = Verbs::durable);

int push_list(lua_State* L, Value list);  // pushes a list that prints as a table

// Reads the name, the first argument of durable verbs: 1 to 200 characters.
std::string check_name(lua_State* L, int index, const char* verb);

// Reads the option sim = { duration = "3h", result = .., checkpoint_every = "10m" }, which declares the outcome of a
// call or step in a rehearsal. of_call: false for steps, which have no checkpoint_every. Returns null if the script
// declared none; duration and checkpoint_every are returned in seconds.
Result<Value> read_sim(lua_State* L, int options, const std::string& verb, bool of_call = true);

// Checks the grants that a store needs: the network of its server, and the keys. store: null if it cannot be opened;
// then what asks it fails, and connects to nothing.
Result<> may_ask_store(const Grants& grants, const std::string& what, const objects::ObjectUrl& url,
                       const objects::ObjectStore* store);

// For await: these push a result onto the Lua stack.
inline int push_nothing(lua_State*) { return 0; }
inline int push_decoded(lua_State* L, Value v) {
  push_value(L, v);
  return 1;
}

// Each file of this folder defines its verbs in one function, which open.cpp calls with the `rille` table at index 1.
int open_flow(lua_State* L);
int open_run(lua_State* L);
int open_args(lua_State* L);
int open_log(lua_State* L);
int open_instance(lua_State* L);
int open_offers(lua_State* L);
int open_store(lua_State* L);
int open_volume(lua_State* L);
int open_gpus(lua_State* L);                // call it after open_tensor, which creates rille.native
int open_texts(lua_State* L);               // the same
int open_stored_checkpoints(lua_State* L);  // the same
void add_scope_functions(lua_State* L);     // adds to the table of primitives at the stack's top
void add_fiber_functions(lua_State* L);
void add_step_functions(lua_State* L);
void add_pool_functions(lua_State* L);
void add_cluster_functions(lua_State* L);

}  // namespace rille::lua
