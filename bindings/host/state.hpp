// State: one lua_State with its own allocator and memory cap. Several live in one process; each belongs to one thread
// at a time. Creating one fails with `config` when the LuaJIT found at run time is not the one compiled against, is not
// a GC64 build, or when another Lua in the process has taken over its symbols.
#pragma once

#include <cstddef>
#include <memory>

#include "bindings/host/lua.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::host {

// What a program allows its scripts that has no reason to say otherwise: half of the memory of this machine, or of the
// address space that the process may have (ulimit -v); RILLE_LUA_MEMORY ("8GB") instead, if it is set.
std::size_t default_memory_limit();

class State {
 public:
  // memory_limit_bytes 0: none. With a limit, allocation beyond it raises "not enough memory" in Lua; the collector
  // works harder from a quarter of the limit on, so that garbage does not count against it for long.
  static Result<std::unique_ptr<State>> create(std::size_t memory_limit_bytes);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  lua_State* lua() const { return L_; }
  std::size_t bytes_used() const { return used_; }
  std::size_t bytes_limit() const { return limit_; }
  bool limit_hit() const { return limit_hit_; }
  Error memory_error() const;      // kind memory, naming the limit
  void* owner = nullptr;           // the LuaHost
  std::uint64_t objects_made = 0;  // the last creation number (object.hpp)

  static State& of(lua_State* L) {  // any coroutine of the state
    void* ud = nullptr;
    lua_getallocf(L, &ud);
    return *static_cast<State*>(ud);
  }

  // While it lives, the limit is a megabyte higher: for the host's own work after the script has used up its share.
  class Reserve {
   public:
    explicit Reserve(lua_State* L) : state_(of(L)) { state_.reserve_ += 1 << 20; }
    ~Reserve() { state_.reserve_ -= 1 << 20; }
    Reserve(const Reserve&) = delete;

   private:
    State& state_;
  };

 private:
  State() = default;
  static void* allocate(void* ud, void* pointer, std::size_t old_size, std::size_t new_size);
  lua_State* L_ = nullptr;
  std::size_t used_ = 0, limit_ = 0, reserve_ = 0;
  bool limit_hit_ = false, pressed_ = false;
};

}  // namespace rille::host
