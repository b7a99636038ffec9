#include "bindings/host/state.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"

// Only in librille.so, which loads LuaJIT itself (cmake/luajit_apart.c.in); elsewhere LuaJIT is linked. Null: LuaJIT is
// loaded; else the reason why it is not.
extern "C" const char* rille_load_luajit() __attribute__((weak));

namespace rille::host {

namespace {

// Checks that all Lua symbols come from one object file, because a program that exports another Lua's symbols silently
// takes over the calls of a shared library (measured).
Result<> refuse_foreign_lua() {
  Dl_info a{}, b{};
  bool known =
      dladdr(reinterpret_cast<void*>(&lua_newstate), &a) && dladdr(reinterpret_cast<void*>(&luaJIT_setmode), &b);
  if (known && a.dli_fbase != b.dli_fbase)
    return make_error(ErrorKind::config,
                      fmt::format("the Lua functions come from '{}', but LuaJIT's from '{}': another Lua in "
                                  "this program has taken over",
                                  a.dli_fname ? a.dli_fname : "?", b.dli_fname ? b.dli_fname : "?"),
                      "load Rille with RTLD_DEEPBIND, or link it statically");
  return {};
}

int read_version(lua_State* L) {
  luaL_openlibs(L);
  lua_getglobal(L, "jit");
  lua_getfield(L, -1, "version_num");
  *static_cast<double*>(lua_touserdata(L, 1)) = lua_tonumber(L, -1);
  return 0;
}

// Blocks of at least this size are mapped. malloc would keep freed large blocks, so a script under a limit could make
// the process hold several times its limit.
constexpr std::size_t mapped_from = 4 << 20;

void* map(std::size_t size) {
  void* p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  (void)::madvise(p, size, MADV_HUGEPAGE);  // touching it for the first time takes half as long
  return p;
}

// Resizes a block where the old or the new block is mapped by mmap.
void* take_mapped(void* pointer, std::size_t old_size, std::size_t new_size) {
  const bool was = pointer && old_size >= mapped_from, is = new_size >= mapped_from;
  if (was && is) {
    void* p = ::mremap(pointer, old_size, new_size, MREMAP_MAYMOVE);
    return p == MAP_FAILED ? nullptr : p;
  }
  void* p = is ? map(new_size) : new_size > 0 ? std::malloc(new_size) : nullptr;
  if (!p && new_size > 0) return nullptr;
  if (pointer && new_size > 0) std::memcpy(p, pointer, std::min(old_size, new_size));
  if (was) ::munmap(pointer, old_size);
  else std::free(pointer);
  return p;
}

}  // namespace

void* LuaState::take(void* pointer, std::size_t old_size, std::size_t new_size) {
  if (allocator_.function) return allocator_.function(allocator_.payload, pointer, old_size, new_size);
  if (pointer && small_.holds(pointer)) return resize_small(pointer, old_size, new_size);
  if (!pointer)
    if (void* block = small_.take(new_size)) return block;
  if (old_size >= mapped_from || new_size >= mapped_from) return take_mapped(pointer, old_size, new_size);
  if (new_size > 0) return std::realloc(pointer, new_size);
  std::free(pointer);
  return nullptr;
}

void* LuaState::resize_small(void* pointer, std::size_t old_size, std::size_t new_size) {
  if (new_size > 0) {
    if (SmallBlocks::same_size(old_size, new_size)) return pointer;
    void* p = take(nullptr, 0, new_size);
    if (!p) return nullptr;
    std::memcpy(p, pointer, std::min(old_size, new_size));
    small_.give(pointer, old_size);
    return p;
  }
  small_.give(pointer, old_size);
  return nullptr;
}

void* LuaState::allocate(void* ud, void* pointer, std::size_t old_size, std::size_t new_size) {
  auto* self = static_cast<LuaState*>(ud);
  if (!pointer) old_size = 0;
  if (new_size == 0) {
    self->used_ -= old_size;
    if (self->use_) self->use_->add_lua(-static_cast<std::int64_t>(old_size));
    if (pointer) self->take(pointer, old_size, 0);
    return nullptr;
  }
  std::size_t after = self->used_ - old_size + new_size;
  const auto more = static_cast<std::int64_t>(new_size) - static_cast<std::int64_t>(old_size);
  const auto fits = [self, more, after] {
    return self->use_ ? self->use_->take_lua(more, static_cast<std::int64_t>(self->reserve_))
                      : more <= 0 || !self->limit_ || after <= self->limit_ + self->reserve_;
  };
  if (!fits() && !(self->relieve && self->relieve() && fits())) {
    self->limit_hit_ = true;
    return nullptr;
  }
  if (more > 0 && self->limit_ &&
      (self->use_ ? static_cast<std::size_t>(self->use_->total_bytes()) : after) > self->limit_ / 4)
    self->press();
  void* p = self->take(pointer, old_size, new_size);
  if (p) self->used_ = after;
  else if (self->use_) self->use_->add_lua(-more);
  return p;
}

// Starts each collection as soon as the last has ended, and collects faster than the script allocates. Only sets the
// collector's parameters.
void LuaState::press() {
  if (pressed_ || !L_) return;
  pressed_ = true;
  lua_gc(L_, LUA_GCSETPAUSE, 100);
  lua_gc(L_, LUA_GCSETSTEPMUL, 400);
}

std::size_t default_memory_limit() {
  if (const char* said = std::getenv("RILLE_LUA_MEMORY"))
    if (Result<std::int64_t> bytes = parse_size_bytes(said); bytes && *bytes > 0)
      return static_cast<std::size_t>(*bytes);
  auto pages = static_cast<std::size_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  std::size_t bytes = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  struct rlimit space {};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    bytes = std::min<std::size_t>(bytes, space.rlim_cur);
  return bytes / 2;
}

Result<std::unique_ptr<LuaState>> LuaState::create(std::size_t memory_limit_bytes, Allocator allocator,
                                                   std::shared_ptr<MemoryUse> use) {
  if (rille_load_luajit)
    if (const char* why = rille_load_luajit())
      return make_error(ErrorKind::config, fmt::format("LuaJIT cannot be loaded: {}", why),
                        "install it (Debian: libluajit-5.1-2), or put it where the loader looks");
  RILLE_CHECK(refuse_foreign_lua());
  std::unique_ptr<LuaState> state(new LuaState());
  state->allocator_ = allocator;
  state->L_ = lua_newstate(&LuaState::allocate, state.get());
  if (!state->L_)
    return make_error(ErrorKind::config,
                      "LuaJIT refused a custom allocator: it is not a GC64 build, or memory is exhausted",
                      "use a LuaJIT 2.1 built with GC64 (the default on 64-bit systems)");
  // Throw instead: by default an error outside of a protected call would end the process.
  lua_atpanic(state->L_, [](lua_State*) -> int { throw std::bad_alloc(); });
  double version = 0;
  if (lua_cpcall(state->L_, read_version, &version) != 0)
    return make_error(ErrorKind::memory, "no memory for the Lua libraries");
  if (version != LUAJIT_VERSION_NUM)
    return make_error(ErrorKind::config,
                      fmt::format("Rille was built for LuaJIT {}, but {} is loaded", LUAJIT_VERSION_NUM, version),
                      "install the LuaJIT that Rille was built with");
  state->limit_ = memory_limit_bytes;
  if (use) {
    use->add_lua(static_cast<std::int64_t>(state->used_));
    state->limit_ = static_cast<std::size_t>(use->limit_bytes());
    state->use_ = std::move(use);
  }
  return state;
}

namespace {
// Drops the references to the script's code and data, except for those in the libraries' own tables.
void drop_roots(lua_State* L) {
  lua_settop(L, 0);
  lua_pushnil(L);
  while (lua_next(L, LUA_REGISTRYINDEX)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) == LUA_TSTRING) continue;
    lua_pushvalue(L, -1);
    lua_pushnil(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
  }
}

constexpr std::size_t quickly_freed_bytes = 4 << 20;
constexpr int cycles_to_free = 3;  // ends the present one, runs the finalizers, frees what these have kept
constexpr std::int64_t free_some_ns = 1'000'000;
}  // namespace

bool LuaState::free_some() {
  if (used_ <= quickly_freed_bytes || cycles_left_ == 0) return true;
  if (cycles_left_ < 0) {
    drop_roots(L_);
    cycles_left_ = cycles_to_free;
    lua_gc(L_, LUA_GCSETSTEPMUL, 10);  // smaller steps: LuaJIT makes as many in one call as allocation is ahead
  }
  const std::int64_t due = system_clock().monotonic_ns() + free_some_ns;
  while (cycles_left_ > 0 && system_clock().monotonic_ns() < due)
    if (lua_gc(L_, LUA_GCSTEP, 0) != 0) --cycles_left_;
  return cycles_left_ == 0;
}

LuaState::~LuaState() {
  if (L_) lua_close(L_);
}

Error LuaState::memory_error() const {
  if (!limit_hit_) return make_error(ErrorKind::memory, "out of memory", "free some memory on this machine");
  if (use_ && use_->limit_bytes()) return use_->error();
  return make_error(
      ErrorKind::memory,
      fmt::format("the script's memory limit of {} is reached", format_size_bytes(static_cast<std::int64_t>(limit_))),
      "keep less in Lua tables, or raise the limit: RILLE_LUA_MEMORY, or memory_bytes when embedded");
}

}  // namespace rille::host
