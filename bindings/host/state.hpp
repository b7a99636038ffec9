// LuaState: one lua_State with an allocator that enforces a memory limit. A process may have several States; one thread
// at a time uses a LuaState. create fails with `config` if the LuaJIT found at run time is not the one compiled
// against, is not a GC64 build, or if another Lua in the process has taken over LuaJIT's symbols.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "bindings/host/lua.hpp"
#include "bindings/host/small_blocks.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/use.hpp"

namespace rille::host {

// The default limit for scripts, in bytes: RILLE_LUA_MEMORY (such as "8GB") if it is set, else half of this machine's
// memory or of the process's address space (ulimit -v).
std::size_t default_memory_limit();

// The allocator of Lua's memory: `function` is called as lua_Alloc, with `payload` first. Null: malloc.
struct Allocator {
  void* (*function)(void* payload, void* pointer, std::size_t old_size, std::size_t new_size) = nullptr;
  void* payload = nullptr;
};

class LuaState {
 public:
  // memory_limit_bytes 0: no limit. Allocation beyond the limit raises "not enough memory" in Lua. Once a quarter of
  // the limit is used, the garbage collector works harder, so that garbage is freed before the limit is reached. With
  // `use` its limit applies instead, and Lua's memory is one part of that count.
  static Result<std::unique_ptr<LuaState>> create(std::size_t memory_limit_bytes, Allocator allocator = {},
                                                  std::shared_ptr<MemoryUse> use = {});
  ~LuaState();
  LuaState(const LuaState&) = delete;
  LuaState& operator=(const LuaState&) = delete;

  // Collects what the script has made, for about a millisecond, once no Lua code will run any more. true: little is
  // left, so that the destructor is quick.
  bool free_some();
  lua_State* lua() const { return L_; }
  std::size_t bytes_used() const { return used_; }
  std::size_t bytes_limit() const { return limit_; }
  Error memory_error() const;      // an error of kind `memory` that names the limit
  std::function<bool()> relieve;   // called when the limit is reached; returns whether it freed memory outside of Lua
  void* owner = nullptr;           // the LuaHost that owns this LuaState
  std::uint64_t objects_made = 0;  // number of objects created so far (object.hpp)

  static LuaState& of(lua_State* L) {  // `L` may be any coroutine of the state
    void* ud = nullptr;
    lua_getallocf(L, &ud);
    return *static_cast<LuaState*>(ud);
  }

  // While a Reserve exists, the limit is 1 MiB higher: for the host's work after the script has reached the limit.
  class Reserve {
   public:
    explicit Reserve(lua_State* L) : state_(of(L)) { state_.reserve_ += 1 << 20; }
    ~Reserve() { state_.reserve_ -= 1 << 20; }
    Reserve(const Reserve&) = delete;

   private:
    LuaState& state_;
  };

 private:
  LuaState() = default;
  static void* allocate(void* ud, void* pointer, std::size_t old_size, std::size_t new_size);
  void* take(void* pointer, std::size_t old_size, std::size_t new_size);
  void* resize_small(void* pointer, std::size_t old_size, std::size_t new_size);
  void press();
  lua_State* L_ = nullptr;
  Allocator allocator_;
  SmallBlocks small_;  // unused with an allocator of the host program
  std::size_t used_ = 0, limit_ = 0, reserve_ = 0;
  bool limit_hit_ = false, pressed_ = false;
  int cycles_left_ = -1;  // of the collector, until free_some() is done; -1: it has not begun
  std::shared_ptr<MemoryUse> use_;
};

}  // namespace rille::host
