#include "bindings/host/reads.hpp"

#include <fmt/format.h>

#include <cstring>
#include <set>

#include "bindings/host/bytecode.hpp"
#include "bindings/host/keys.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::host {

std::string text_in_key(std::string_view text) {
  if (text.size() <= 64) return Value(text).to_json();
  return fmt::format("a text of {} bytes, {}", text.size(), sha256_hex(text));
}

namespace {

// Indices in the table `seen` for place i (from 0): the function or table of globals that holds it, its name if it is a
// global, and its value.
int holder_at(std::size_t i) { return static_cast<int>(3 * i + 1); }
int name_at(std::size_t i) { return static_cast<int>(3 * i + 2); }
int value_at(std::size_t i) { return static_cast<int>(3 * i + 3); }

bool is_same(lua_State* L, int a, int b) {
  if (lua_rawequal(L, a, b)) return true;
  if (lua_type(L, a) != LUA_TNUMBER || lua_type(L, b) != LUA_TNUMBER) return false;
  const double x = lua_tonumber(L, a), y = lua_tonumber(L, b);
  return x != x && y != y;
}

// Pushes the current value of place i: an upvalue or a global.
void push_current(lua_State* L, const Reads::Variable& place, std::size_t i, int seen) {
  lua_rawgeti(L, seen, holder_at(i));
  if (place.upvalue != 0) {
    lua_getupvalue(L, -1, place.upvalue);
  } else {
    lua_rawgeti(L, seen, name_at(i));
    lua_rawget(L, -2);
  }
  lua_remove(L, -2);
}

// A number that identifies the object at `value` as long as it lives.
int number_of(lua_State* L, int value, int seen) {
  lua_getfield(L, seen, "ids");
  const int ids = lua_gettop(L);
  lua_pushvalue(L, value);
  lua_rawget(L, ids);
  auto number = static_cast<int>(lua_tointeger(L, -1));
  if (number == 0) {
    lua_getfield(L, seen, "count");
    number = static_cast<int>(lua_tointeger(L, -1)) + 1;
    lua_pushinteger(L, number);
    lua_setfield(L, seen, "count");
    lua_pushvalue(L, value);
    lua_pushinteger(L, number);
    lua_rawset(L, ids);
  }
  lua_settop(L, ids - 1);
  return number;
}

std::string told(lua_State* L, int value, int seen) {
  switch (lua_type(L, value)) {
    case LUA_TNIL: return "nil";
    case LUA_TBOOLEAN: return lua_toboolean(L, value) ? "true" : "false";
    case LUA_TNUMBER: return fmt::format("{}", lua_tonumber(L, value));
    case LUA_TSTRING: {
      std::size_t size = 0;
      const char* text = lua_tolstring(L, value, &size);
      return text_in_key({text, size});
    }
    default: return fmt::format("{} #{}", type_name(L, value), number_of(L, value, seen));
  }
}

bool is_script_function(lua_State* L, int index) {
  if (lua_type(L, index) != LUA_TFUNCTION || lua_iscfunction(L, index)) return false;
  lua_Debug ar;
  lua_pushvalue(L, index);
  lua_getinfo(L, ">S", &ar);
  return std::strncmp(ar.source, "=[rille", 7) != 0;
}

constexpr int reads_depth_max = 8;
constexpr std::size_t places_max = 256;

struct Found {
  Reads::Variable place;
  const void* cell;  // identifies the upvalue; null: the place is a global
};

// Collects the variables that a function and the functions it calls read and assign.
struct Walk {
  lua_State* L;
  int holders;  // index of a table: place number -> the function or table of globals that holds the place
  std::vector<Found> found = {};
  std::set<const void*> entered = {}, cells = {}, assigned = {};
  std::set<std::string> globals = {}, assigned_globals = {};

  void enter(int function, int depth) {
    if (depth > reads_depth_max || !entered.insert(lua_topointer(L, function)).second) return;
    luaL_checkstack(L, 12, "rille.compile");
    const auto dump = dump_function(L, function);
    const auto prototypes = read_prototypes(dump);
    if (!prototypes) return;
    const auto& own = prototypes->back().assigned;
    for (int i = 1; const char* name = lua_getupvalue(L, function, i); ++i) {
      const int value = lua_gettop(L);
      const void* cell = lua_upvalueid(L, function, i);
      if (static_cast<std::size_t>(i) <= own.size() && own[static_cast<std::size_t>(i - 1)]) assigned.insert(cell);
      if (found.size() < places_max && cells.insert(cell).second)
        add({name, "", i, false}, cell, function, value, depth);
      lua_settop(L, value - 1);
    }
    for (const auto& p : *prototypes) {
      assigned_globals.insert(p.writes.begin(), p.writes.end());
      for (const auto& name : p.reads)
        if (found.size() < places_max && globals.insert(name).second) enter_global(name, depth);
    }
  }

  void enter_global(const std::string& name, int depth) {
    get_registry(L, &key_core);
    lua_getfield(L, -1, "store");
    lua_remove(L, -2);
    const int store = lua_gettop(L);
    lua_pushlstring(L, name.data(), name.size());
    lua_rawget(L, store);
    add({name, "", 0, false}, nullptr, store, lua_gettop(L), depth);
    lua_settop(L, store - 1);
  }

  void add(Reads::Variable place, const void* cell, int holder, int value, int depth) {
    place.function = is_script_function(L, value);
    const bool inner = place.function;
    found.push_back({std::move(place), cell});
    lua_pushvalue(L, holder);
    lua_rawseti(L, holders, static_cast<int>(found.size()));
    if (inner) enter(value, depth + 1);
  }

  bool assigns(const Found& f) const {
    return f.cell ? assigned.contains(f.cell) : assigned_globals.contains(f.place.name);
  }
};

}  // namespace

// Finds the variables that the functions read, then drops those that one of the functions assigns.
void Reads::find(lua_State* L, int function, int seen) {
  lua_newtable(L);
  const int holders = lua_gettop(L);
  Walk walk{L, holders};
  walk.enter(function, 0);
  for (std::size_t i = 0; i < places_.size(); ++i) {  // forget the places of the previous walk
    for (const int at : {holder_at(i), name_at(i), value_at(i)}) {
      lua_pushnil(L);
      lua_rawseti(L, seen, at);
    }
  }
  places_.clear();
  for (std::size_t i = 0; i < walk.found.size(); ++i) {
    const auto& [place, cell] = walk.found[i];
    if (walk.assigns(walk.found[i])) continue;
    lua_rawgeti(L, holders, static_cast<int>(i + 1));
    lua_rawseti(L, seen, holder_at(places_.size()));
    if (!cell) {
      lua_pushlstring(L, place.name.data(), place.name.size());
      lua_rawseti(L, seen, name_at(places_.size()));
    }
    places_.push_back(place);
  }
  lua_settop(L, holders - 1);
}

bool Reads::look(lua_State* L, int function, int seen) {
  bool changed = !found_, functions = !found_;
  for (std::size_t i = 0; found_ && i < places_.size(); ++i) {
    push_current(L, places_[i], i, seen);
    lua_rawgeti(L, seen, value_at(i));
    const bool same = is_same(L, -1, -2);
    const bool inner = !same && (places_[i].function || is_script_function(L, lua_gettop(L) - 1));
    lua_pop(L, 2);
    changed = changed || !same;
    functions = functions || inner;
    if (functions) break;
  }
  if (!changed) return false;
  if (functions) find(L, function, seen);
  found_ = true;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    push_current(L, places_[i], i, seen);
    places_[i].value = told(L, lua_gettop(L), seen);
    lua_rawseti(L, seen, value_at(i));
  }
  return true;
}

}  // namespace rille::host
