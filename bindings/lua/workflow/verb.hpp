// The common start of every `rille` verb: the calling fiber, its run, and the position in the script.
#pragma once

#include "bindings/host/host.hpp"
#include "bindings/host/open.hpp"
#include "runtime/workflow/engine/run.hpp"

namespace rille::lua {

using namespace rille::host;  // the glue is made of the host's words

// "train.lua:12", computed on demand. After a tail call, `return rille.step(..)`, the calling line is gone from the
// stack; the position is then the start of the function passed to the verb.
struct Place {
  lua_State* L;
  operator std::string() const;  // NOLINT: implicit by design
};

struct Verb {
  LuaHost& host;
  engine::Run& run;
  Fiber& fiber;
  FiberId id;
  Place source;
};

// durable: journaled; refused inside a step's body, because a step is recorded as a whole.
// Raises `state` outside a run.
enum class Verbs { durable, anywhere };
Verb begin_verb(lua_State* L, const char* name, Verbs kind = Verbs::durable);

// The first argument of durable verbs: 1 to 200 characters.
std::string check_name(lua_State* L, int index, const char* verb);

// sim = { duration = "3h", result = .., checkpoint_every = "10m" }: the outcome of a call in a rehearsal; a step has
// no checkpoint_every. Null: not declared. duration and checkpoint_every are returned in seconds.
Result<Value> read_sim(lua_State* L, int options, const std::string& verb, bool of_call = true);

// Push functions for await.
inline int push_nothing(lua_State*) { return 0; }
inline int push_decoded(lua_State* L, Value v) {
  push_value(L, v);
  return 1;
}

// Openers, one per file; open.cpp lists them. Each finds the `rille` table at index 1.
int open_flow(lua_State* L);
int open_run(lua_State* L);
int open_args(lua_State* L);
int open_log(lua_State* L);
int open_instance(lua_State* L);
int open_offers(lua_State* L);
int open_gpus(lua_State* L);             // after open_tensor, which creates rille.native
void add_scope_functions(lua_State* L);  // into the table of primitives at the stack's top
void add_fiber_functions(lua_State* L);
void add_step_functions(lua_State* L);
void add_pool_functions(lua_State* L);
void add_cluster_functions(lua_State* L);

}  // namespace rille::lua
