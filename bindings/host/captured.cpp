#include "bindings/host/captured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "bindings/host/errors.hpp"
#include "bindings/host/keys.hpp"

namespace rille::host {

namespace {

constexpr std::size_t entries_max = 100'000;
constexpr int depth_max = 60;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15ULL + b + 0x7f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint64_t shallow_hash(lua_State* L, int index) {
  int type = lua_type(L, index);
  switch (type) {
    case LUA_TNIL: return 1;
    case LUA_TBOOLEAN: return lua_toboolean(L, index) ? 3 : 2;
    case LUA_TNUMBER: {
      double n = lua_tonumber(L, index);
      std::uint64_t bits;
      std::memcpy(&bits, &n, sizeof bits);
      return mix(4, bits);
    }
    case LUA_TSTRING: {
      std::size_t size = 0;
      const char* s = lua_tolstring(L, index, &size);
      return mix(mix(5, reinterpret_cast<std::uintptr_t>(s)), size);  // equal strings are one object
    }
    default:
      return mix(static_cast<std::uint64_t>(type) + 6, reinterpret_cast<std::uintptr_t>(lua_topointer(L, index)));
  }
}

}  // namespace

class CapturedWalk {
 public:
  explicit CapturedWalk(lua_State* L) : L_(L) {}

  // Calls emit(name, is_table, hash) for every variable that the function at `index` reaches.
  template <class Emit>
  void function(int index, int depth, const Emit& emit) {
    if (depth > depth_max || !functions_.insert(lua_topointer(L_, index)).second) return;
    luaL_checkstack(L_, 8, "step");
    lua_Debug ar;
    lua_pushvalue(L_, index);
    lua_getinfo(L_, ">S", &ar);
    if (ar.what[0] == 'C' || std::strncmp(ar.source, "=[rille", 7) == 0) return;
    for (int i = 1; const char* name = lua_getupvalue(L_, index, i); ++i) {
      int value = lua_gettop(L_);
      const void* cell = lua_upvalueid(L_, index, i);
      if (cells_.insert(cell).second) {
        bool table = lua_type(L_, value) == LUA_TTABLE && !ours(lua_topointer(L_, value));
        emit(name, table, deep_hash(value));
        if (lua_type(L_, value) == LUA_TFUNCTION) function(value, depth + 1, emit);
      }
      lua_pop(L_, 1);
    }
  }

 private:
  std::uint64_t shallow(int index) { return shallow_hash(L_, index); }

  // Whether the table belongs to Rille, a library or a module. The list is made at the first table, because most step
  // bodies capture none.
  bool ours(const void* table) {
    if (ours_.empty()) {
      luaL_checkstack(L_, 6, "step");
      for (const char* key : {&key_env, &key_core, &key_rille}) {
        get_registry(L_, key);
        ours_.push_back(lua_topointer(L_, -1));
        lua_pop(L_, 1);
      }
      get_registry(L_, &key_core);
      for (const char* name : {"store", "loaded"}) {
        lua_getfield(L_, -1, name);
        if (lua_istable(L_, -1)) add_tables(lua_gettop(L_));
        lua_pop(L_, 1);
      }
      lua_pop(L_, 1);
      std::sort(ours_.begin(), ours_.end());
    }
    return std::binary_search(ours_.begin(), ours_.end(), table);
  }

  void add_tables(int t) {
    lua_pushnil(L_);
    while (lua_next(L_, t)) {
      if (lua_istable(L_, -1)) ours_.push_back(lua_topointer(L_, -1));
      lua_pop(L_, 1);
    }
  }

  // The sum of the shallow hashes of all tables reached, so that the order of entries does not matter. Within a shallow
  // hash, a nested table counts by its address.
  std::uint64_t deep_hash(int index) {
    std::set<const void*> seen;
    std::uint64_t total = shallow(index);
    bool whole = add_contents(absolute(L_, index), 0, seen, total);
    return whole ? total : shallow(index);
  }

  // Adds the entries of table `t` to the hash. False: a limit was exceeded, and the hash is incomplete.
  bool add_contents(int t, int depth, std::set<const void*>& seen, std::uint64_t& total) {
    if (lua_type(L_, t) != LUA_TTABLE || depth > depth_max) return true;
    const void* p = lua_topointer(L_, t);
    if (ours(p) || !seen.insert(p).second) return true;
    luaL_checkstack(L_, 6, "step");
    std::uint64_t sum = shallow(t);
    lua_pushnil(L_);
    while (lua_next(L_, t)) {
      int value = lua_gettop(L_);
      sum += mix(shallow(value - 1), shallow(value));
      if (++entries_ > entries_max || !add_contents(value, depth + 1, seen, total)) {
        lua_pop(L_, 2);
        return false;
      }
      lua_pop(L_, 1);
    }
    total += mix(sum, 7);
    return true;
  }

  lua_State* L_;
  std::vector<const void*> ours_;  // addresses of the tables that belong to Rille, sorted
  std::set<const void*> functions_, cells_;
  std::size_t entries_ = 0;
};

// Records the upvalues if all are scalars and few enough; otherwise returns false. A variable that later becomes a
// table gets another hash.
bool Captured::note_scalars(lua_State* L, int function) {
  if (lua_iscfunction(L, function)) return false;
  count_ = 0;
  for (int i = 1; const char* name = lua_getupvalue(L, function, i); ++i) {
    int type = lua_type(L, -1);
    bool scalar = type == LUA_TNIL || type == LUA_TNUMBER || type == LUA_TBOOLEAN || type == LUA_TSTRING;
    if (scalar && count_ < scalars_max) scalars_[count_++] = {name, shallow_hash(L, lua_gettop(L))};
    else count_ = -1;
    lua_pop(L, 1);
    if (count_ < 0) return false;
  }
  return true;
}

std::vector<Captured::Variable> Captured::listed() const {
  std::vector<Variable> out = variables_;
  for (int i = 0; i < count_; ++i) out.push_back({scalars_[i].name, false, scalars_[i].hash});
  return out;
}

Captured Captured::of(lua_State* L, int function) {
  Captured out;
  function = absolute(L, function);
  if (out.note_scalars(L, function)) return out;
  StackGuard guard(L);
  CapturedWalk walk(L);
  walk.function(function, 0, [&out](const char* name, bool table, std::uint64_t hash) {
    out.variables_.push_back({name, table, hash});
  });
  return out;
}

std::string Captured::difference(const Captured& before) const {
  if (count_ >= 0 && count_ == before.count_) {
    bool same = true;
    for (int i = 0; i < count_; ++i) same = same && scalars_[i].hash == before.scalars_[i].hash;
    if (same) return {};
  }
  std::vector<Variable> then = before.listed(), now = listed();
  std::string out;
  for (std::size_t i = 0; i < std::min(then.size(), now.size()); ++i) {
    const Variable &a = then[i], &b = now[i];
    if (a.hash == b.hash && a.name == b.name) continue;
    // Stop at different names: once a captured function was replaced, the two walks visit different variables.
    if (a.name != b.name) break;
    if (!out.empty()) out += " and ";
    out += fmt::format("{}'{}'", a.table && b.table ? "the table " : "", a.name);
  }
  return out;
}

}  // namespace rille::host
