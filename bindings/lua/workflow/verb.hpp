// What every verb of the `rille` table begins with: the fiber that calls it, its run, and where in the script it
// stands.
#pragma once

#include "bindings/host/host.hpp"
#include "bindings/host/open.hpp"
#include "runtime/workflow/engine/run.hpp"

namespace rille::lua {

using namespace rille::host;  // the glue is made of the host's words

// "train.lua:12", found when it is asked for. After `return rille.step(..)`, a tail call, the line that called is gone
// from the stack: then it is where the function begins that the verb was given.
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

// durable: journaled; refused inside the body of a step, which is done, or not, as a whole.
// Raises `state` outside of a run.
enum class Verbs { durable, anywhere };
Verb begin_verb(lua_State* L, const char* name, Verbs kind = Verbs::durable);

// The first argument of durable verbs: 1 to 200 characters.
std::string check_name(lua_State* L, int index, const char* verb);

// sim = { duration = "3h", result = .., checkpoint_every = "10m" }: what a rehearsal makes of a call, or (without the
// last) of a step. Null: not declared. duration and checkpoint_every are seconds then.
Result<Value> read_sim(lua_State* L, int options, const std::string& verb, bool of_call = true);

// For await: pushes nothing, or the decoded value.
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
int open_gpus(lua_State* L);             // after open_tensor, which makes rille.native
void add_scope_functions(lua_State* L);  // to the table of primitives on top
void add_fiber_functions(lua_State* L);
void add_step_functions(lua_State* L);
void add_pool_functions(lua_State* L);
void add_cluster_functions(lua_State* L);

}  // namespace rille::lua
