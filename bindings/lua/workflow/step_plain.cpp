// The short path of rille.step, because a run may do hundreds of thousands of steps. It applies to a step without
// options that is not yet recorded and whose body succeeds. One primitive runs before the body and one after it;
// plain_end suspends the fiber once, until the outcome is durable. Every other case takes the long path (step.cpp),
// which writes the same record: either plain_begin refuses, or flow.cpp asks for the ticket that step_begin would
// have made.
#include <charconv>
#include <cstring>

#include "bindings/lua/workflow/step.hpp"
#include "runtime/core/store/blobs.hpp"

namespace rille::lua {

namespace {

// Returns the script position of the rille.step call, two stack frames up. Empty if that frame is not Lua code of the
// script.
std::string_view caller(lua_State* L, char (&buffer)[LUA_IDSIZE + 16]) {
  lua_Debug ar;
  if (!lua_getstack(L, 2, &ar) || !lua_getinfo(L, "Sl", &ar)) return {};
  if (ar.what[0] == 'C' || std::strncmp(ar.source, "=[rille", 7) == 0) return {};
  std::size_t n = std::strlen(ar.short_src);
  std::memcpy(buffer, ar.short_src, n);
  buffer[n++] = ':';
  char* end = std::to_chars(buffer + n, std::end(buffer), ar.currentline).ptr;
  return {buffer, static_cast<std::size_t>(end - buffer)};
}

// plain_begin(name, fn) -> whether the body may run now
int plain_begin(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  Fiber* f = host.current();
  if (!f || f->L != L || !host.has_run() || !f->step.empty() || !lua_isyieldable(L)) return 0;
  if (lua_type(L, 1) != LUA_TSTRING || lua_type(L, 2) != LUA_TFUNCTION) return 0;
  std::size_t size = 0;
  const char* text = lua_tolstring(L, 1, &size);
  if (size == 0 || size > 200) return 0;
  char buffer[LUA_IDSIZE + 16];
  std::string_view source = caller(L, buffer), name(text, size);
  std::uint64_t seed = 0;
  if (source.empty() || !host.run().plain_begin(f->id, name, source, seed)) return 0;
  f->plain.runs = true;
  f->plain.before = Captured::of(L, 2);
  f->plain.outer = f->random;
  f->random.reseed(seed);
  f->step = name;
  lua_pushboolean(L, 1);
  return 1;
}

// plain_end(fn, value, number of results) -> nothing if the short path does not apply; else suspends the fiber
int plain_end(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  Fiber* f = host.current();
  if (!f || !f->plain.runs || f->L != L || !lua_isyieldable(L) || lua_tointeger(L, 3) > 1) return 0;
  if (!Captured::of(L, 1).difference(f->plain.before).empty()) return 0;
  Value value;
  switch (lua_type(L, 2)) {
    case LUA_TNIL: break;
    case LUA_TBOOLEAN: value = lua_toboolean(L, 2) != 0; break;
    case LUA_TNUMBER: value = lua_tonumber(L, 2); break;
    default: {
      // The short path is for results that stay in the journal's row; larger ones are converted on the other path.
      constexpr std::size_t row_bytes_max = store::inline_bytes_max, counted_per_byte = 32;
      std::size_t counted = 0;
      if (lua_type(L, 2) == LUA_TSTRING && lua_objlen(L, 2) > row_bytes_max) return 0;
      Result<Value> coded = to_value(L, 2, "the result", &counted);
      if (!coded || counted > counted_per_byte * row_bytes_max) return 0;
      value = std::move(*coded);
    }
  }
  if (!host.run().plain_end(f->id, value)) return 0;
  if (int type = lua_type(L, 2); type == LUA_TTABLE || type == LUA_TUSERDATA) f->plain.kept = std::move(value);
  f->plain.runs = false;
  f->plain.waits = true;
  f->step.clear();
  f->random = f->plain.outer;
  ++f->suspension;
  f->starting = false;
  f->ready = -1;
  f->waiting = true;
  f->engine_wait = false;
  f->awaiting = L;
  return suspend(L);
}

int plain_result(lua_State* L) {
  Verb v = begin_verb(L, "step");
  Value value = std::exchange(v.fiber.plain.kept, Value());
  push_value(L, value);
  return 1;
}

// plain_ticket() -> the ticket, in the state in which step_begin and step_enter would have left it
int plain_ticket(lua_State* L) {
  Verb v = begin_verb(L, "step", Verbs::anywhere);
  Fiber::Plain& plain = v.fiber.plain;
  plain.runs = false;
  push_object(L, StepObject{v.run.plain_ticket(v.id),
                            v.fiber.step,
                            v.run.id(),
                            false,
                            false,
                            plain.outer,
                            std::move(plain.before),
                            {},
                            nullptr});
  return 1;
}

}  // namespace

void add_plain_step_functions(lua_State* L) {
  set_functions(L, {{"plain_begin", bind<plain_begin>},
                    {"plain_end", bind<plain_end>},
                    {"plain_result", bind<plain_result>},
                    {"plain_ticket", bind<plain_ticket>},
                    {"raise_awaited", bind<unpack_result>}});
  StepObject any;
  any.plain = true;
  push_object(L, std::move(any));
  lua_setfield(L, -2, "plain_step");
}

}  // namespace rille::lua
