#include "bindings/host/lua.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "bindings/host/errors.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::host {

std::string type_name(lua_State* L, int index) {
  if (lua_type(L, index) == LUA_TUSERDATA && lua_getmetatable(L, index)) {
    lua_getfield(L, -1, "__name");
    std::string name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "userdata";
    lua_pop(L, 2);
    return name;
  }
  if (lua_type(L, index) == LUA_TNONE) return "nothing";
  return luaL_typename(L, index);
}

std::string describe(lua_State* L, int index) {
  index = absolute(L, index);
  switch (lua_type(L, index)) {
    case LUA_TSTRING: {
      std::size_t size = 0;
      const char* s = lua_tolstring(L, index, &size);
      return size <= 60 ? fmt::format("\"{}\"", std::string_view(s, size))
                        : fmt::format("\"{}...\"", std::string_view(s, 57));
    }
    case LUA_TNUMBER: return fmt::format("{}", lua_tonumber(L, index));
    case LUA_TBOOLEAN: return lua_toboolean(L, index) ? "true" : "false";
    case LUA_TNIL: return "nil";
    case LUA_TNONE: return "nothing";
    default: {
      std::string name = type_name(L, index);
      bool vowel = std::string_view("AEIOUaeio").find(name.front()) != std::string_view::npos;
      return (vowel ? "an " : "a ") + name;
    }
  }
}

void raise(lua_State* L, Error error) {
  {
    Error e = std::move(error);
    if (e.traceback.empty()) e.traceback = traceback(L, 0, false);
    push_error(L, e);
  }
  lua_error(L);
  __builtin_unreachable();
}

void raise_invalid(lua_State* L, std::string message, std::string hint) {
  raise(L, make_error(ErrorKind::invalid, std::move(message), std::move(hint)));
}

namespace {
[[noreturn]] void wrong(lua_State* L, int index, const char* what, const char* wanted) {
  raise_invalid(L, fmt::format("{}: expected {}, got {}", what, wanted, describe(L, index)));
}
}  // namespace

std::string_view check_text(lua_State* L, int index, const char* what) {
  if (lua_type(L, index) != LUA_TSTRING) wrong(L, index, what, "a string");
  std::size_t size = 0;
  const char* s = lua_tolstring(L, index, &size);
  return {s, size};
}

double check_number(lua_State* L, int index, const char* what) {
  if (lua_type(L, index) != LUA_TNUMBER) wrong(L, index, what, "a number");
  return lua_tonumber(L, index);
}

std::int64_t check_integer(lua_State* L, int index, const char* what) {
  double n = check_number(L, index, what);
  if (n != std::floor(n) || std::fabs(n) > 9007199254740992.0) wrong(L, index, what, "a whole number");
  return static_cast<std::int64_t>(n);
}

bool check_bool(lua_State* L, int index, const char* what) {
  if (lua_type(L, index) != LUA_TBOOLEAN) wrong(L, index, what, "true or false");
  return lua_toboolean(L, index) != 0;
}

void check_table(lua_State* L, int index, const char* what) {
  if (lua_type(L, index) != LUA_TTABLE) wrong(L, index, what, "a table");
}

void check_function(lua_State* L, int index, const char* what) {
  if (lua_type(L, index) != LUA_TFUNCTION) wrong(L, index, what, "a function");
}

std::int64_t check_duration_ms(lua_State* L, int index, const char* what) {
  if (lua_type(L, index) == LUA_TNUMBER) {
    double seconds = lua_tonumber(L, index);
    if (!(seconds >= 0 && seconds < 1e12)) wrong(L, index, what, "a duration such as \"30s\", or seconds");
    return std::llround(seconds * 1000);
  }
  if (lua_type(L, index) != LUA_TSTRING) wrong(L, index, what, "a duration such as \"30s\", or seconds");
  Result<std::int64_t> ms = parse_duration_ms(check_text(L, index, what));
  if (!ms) {
    Error e = ms.error();
    e.message = fmt::format("{}: {}", what, e.message);
    raise(L, std::move(e));
  }
  return *ms;
}

void check_options(lua_State* L, int index, const char* verb, std::initializer_list<const char*> known) {
  if (lua_isnoneornil(L, index)) return;
  if (lua_type(L, index) != LUA_TTABLE)
    raise_invalid(L, fmt::format("{}: expected a table of options, got {}", verb, describe(L, index)));
  index = absolute(L, index);
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);
    bool found = false;
    if (lua_type(L, -1) == LUA_TSTRING)
      for (const char* k : known) found = found || std::string_view(k) == lua_tostring(L, -1);
    if (found) continue;
    std::vector<std::string> names(known.begin(), known.end());
    std::string shown = describe(L, -1), list;
    for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
    std::string near = lua_type(L, -1) == LUA_TSTRING ? did_you_mean(lua_tostring(L, -1), names) : "";
    if (lua_type(L, -1) == LUA_TSTRING) shown = fmt::format("'{}'", lua_tostring(L, -1));
    raise_invalid(L, fmt::format("{}: unknown option {}", verb, shown),
                  near.empty() ? fmt::format("the options are: {}", list) : fmt::format("did you mean '{}'?", near));
  }
}

namespace {
// Pushes the option `key` and returns true; returns false and pushes nothing if the option is absent.
bool push_option(lua_State* L, int index, const char* key) {
  if (lua_type(L, index) != LUA_TTABLE) return false;
  lua_getfield(L, index, key);
  if (!lua_isnil(L, -1)) return true;
  lua_pop(L, 1);
  return false;
}
}  // namespace

std::optional<std::string> option_text(lua_State* L, int index, const char* key) {
  if (!push_option(L, index, key)) return {};
  std::string s(check_text(L, -1, key));
  lua_pop(L, 1);
  return s;
}

std::optional<double> option_number(lua_State* L, int index, const char* key) {
  if (!push_option(L, index, key)) return {};
  double n = check_number(L, -1, key);
  lua_pop(L, 1);
  return n;
}

std::optional<std::int64_t> option_duration_ms(lua_State* L, int index, const char* key) {
  if (!push_option(L, index, key)) return {};
  std::int64_t ms = check_duration_ms(L, -1, key);
  lua_pop(L, 1);
  return ms;
}

bool option_bool(lua_State* L, int index, const char* key, bool otherwise) {
  if (!push_option(L, index, key)) return otherwise;
  bool b = check_bool(L, -1, key);
  lua_pop(L, 1);
  return b;
}

void set_functions(lua_State* L, std::initializer_list<Function> functions) {
  for (const Function& f : functions) {
    lua_pushcfunction(L, f.function);
    lua_setfield(L, -2, f.name);
  }
}

}  // namespace rille::host
