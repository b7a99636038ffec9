#include "bindings/host/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "bindings/host/host.hpp"
#include "bindings/host/object.hpp"
#include "bindings/host/object_class.hpp"

namespace rille::host {

namespace {

constexpr int nesting_max = 100;
constexpr std::size_t values_max = 10'000'000;
constexpr std::size_t values_per_check = 4096, tables_per_check = 16;
constexpr std::size_t bytes_per_value = 64;
constexpr std::size_t long_text_bytes = 64 << 10, weighed_max = 4096;

class Encoder {
 public:
  Encoder(lua_State* L, std::string_view what, int root)
      : L_(L), what_(what), root_(root),
        bytes_left_(LuaState::of(L).bytes_limit() ? LuaState::of(L).bytes_limit() : SIZE_MAX) {
    if (const auto& use = LuaHost::of(L).options().memory; use && use->limit_bytes()) bytes_left_ = room(*use);
  }

  Result<Value> encode(int index) {
    if (weighs_ && count_ == weighed_max) return stop_weighing();
    if (++count_ > values_max)
      return refuse(fmt::format("holds more than {} values", values_max), "keep large data in files or tensors");
    if (count_ % values_per_check == 0) LuaHost::of(L_).check(L_);
    const bool text_too = lua_type(L_, index) == LUA_TSTRING;
    RILLE_CHECK(take(bytes_per_value + (text_too ? lua_objlen(L_, index) : 0)));
    switch (lua_type(L_, index)) {
      case LUA_TNONE:
      case LUA_TNIL: return Value();
      case LUA_TBOOLEAN: return Value(lua_toboolean(L_, index) != 0);
      case LUA_TNUMBER: return Value(lua_tonumber(L_, index));
      case LUA_TSTRING: return weighs_ ? Value() : Value(text(index));
      case LUA_TTABLE: return table(absolute(L_, index));
      case LUA_TLIGHTUSERDATA:
        if (is_null(L_, index)) return Value();
        break;
      case LUA_TUSERDATA:
        if (auto encode_object = object_encoder(L_, index)) return weighs_ ? Value() : encode_object(L_, index);
        break;
      default: break;
    }
    return refuse(fmt::format("is {}, which cannot be stored", describe(L_, index)),
                  "pass numbers, strings, booleans and tables of them");
  }

  std::size_t bytes_taken() const { return bytes_taken_; }

 private:
  static std::size_t room(const MemoryUse& use) {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, use.room_bytes()));
  }

  // Before the first long text is copied: walks the beginning of the data without copying, so that a table that holds
  // such a text very often is refused at once.
  Result<> weigh() {
    if (std::exchange(weighed_, true)) return {};
    Encoder scout(L_, what_, root_);
    scout.weighs_ = scout.weighed_ = true;
    Result<Value> refused = scout.encode(root_);
    if (!refused && !scout.stopped_) return std::move(refused).error();
    return {};
  }
  Error stop_weighing() {
    stopped_ = true;
    return make_error(ErrorKind::invalid, "the rest is not weighed");
  }

  // A table that is reached twice is written twice, so that a small one can become large data.
  Result<> take(std::size_t bytes) {
    if (bytes >= long_text_bytes) RILLE_CHECK(weigh());
    if (bytes > bytes_left_ && !collected_) collect();
    if (bytes > bytes_left_)
      return refuse("is larger than what the memory limit leaves", "keep large data in files or tensors");
    bytes_left_ -= bytes;
    bytes_taken_ += bytes;
    return {};
  }

  // Collects garbage, which may free enough of the run's memory limit.
  void collect() {
    collected_ = true;
    const auto& use = LuaHost::of(L_).options().memory;
    if (!use || !use->limit_bytes()) return;
    lua_gc(L_, LUA_GCCOLLECT, 0);
    bytes_left_ = room(*use) - std::min(room(*use), bytes_taken_);
  }

  // One level of the path to the value being encoded: an index in a list, or the stack index of the key.
  struct Step {
    std::size_t place;
    int key;
    bool is_field;
  };

  Error refuse(std::string why, std::string hint) const {
    std::string path = what_;
    for (const Step& s : path_) {
      if (s.place) path += fmt::format("[{}]", s.place);
      else path += s.is_field ? "." + text(s.key) : fmt::format("[{}]", describe(L_, s.key));
    }
    return make_error(ErrorKind::invalid, path + " " + why, std::move(hint));
  }

  std::string text(int index) const {
    std::size_t size = 0;
    const char* s = lua_tolstring(L_, index, &size);
    return std::string(s, size);
  }

  Result<Value> table(int t) {
    const void* id = lua_topointer(L_, t);
    if (std::find(open_.begin(), open_.end(), id) != open_.end())
      return refuse("contains a table that refers back to itself", "pass tables without such cycles");
    if (open_.size() >= nesting_max) return refuse(fmt::format("is nested deeper than {} tables", nesting_max), "");
    luaL_checkstack(L_, 6, "value");
    // Walking a long table of nils takes milliseconds; asking takes as long as a table of few values.
    if (++tables_ % tables_per_check == 0) LuaHost::of(L_).check(L_);
    open_.push_back(id);
    Result<Value> out = contents(t);
    open_.pop_back();
    return out;
  }

  Result<Value> contents(int t) {
    std::size_t entries = 0;
    bool strings = true;
    lua_pushnil(L_);
    while (lua_next(L_, t)) {
      lua_pop(L_, 1);
      ++entries;
      strings = strings && lua_type(L_, -1) == LUA_TSTRING;
    }
    if (entries == 0) return Value(Value::Array{});
    if (strings) return object(t);
    if (lua_objlen(L_, t) == entries) {
      bool sequence = true;
      for (std::size_t i = 1; i <= entries && sequence; ++i) {
        lua_rawgeti(L_, t, static_cast<int>(i));
        sequence = !lua_isnil(L_, -1);
        lua_pop(L_, 1);
      }
      if (sequence) return array(t, entries);
    }
    return map(t);
  }

  Result<Value> member(int index, Step step) {
    path_.push_back(step);
    Result<Value> v = encode(index);
    path_.pop_back();
    return v;
  }

  Result<Value> array(int t, std::size_t n) {
    Value::Array out;
    if (!weighs_) out.reserve(n);
    for (std::size_t i = 1; i <= n; ++i) {
      lua_rawgeti(L_, t, static_cast<int>(i));
      Result<Value> v = member(lua_gettop(L_), {i, 0, false});
      lua_pop(L_, 1);
      if (!v) return v;
      if (!weighs_) out.push_back(std::move(*v));
    }
    return Value(std::move(out));
  }

  Result<Value> object(int t) {
    Value::Object out;
    lua_pushnil(L_);
    while (lua_next(L_, t)) {
      const Result<> fits = take(lua_objlen(L_, -2));
      Result<Value> v = fits ? member(lua_gettop(L_), {0, lua_gettop(L_) - 1, true}) : Result<Value>(fits.error());
      if (!v) {
        lua_pop(L_, 2);
        return v;
      }
      if (!weighs_) out.emplace(text(-2), std::move(*v));
      lua_pop(L_, 1);
    }
    return Value(std::move(out));
  }

  Result<Value> map(int t) {
    Value::Map out;
    lua_pushnil(L_);
    while (lua_next(L_, t)) {
      Value key;
      switch (lua_type(L_, -2)) {
        case LUA_TNUMBER: key = Value(lua_tonumber(L_, -2)); break;
        case LUA_TBOOLEAN: key = Value(lua_toboolean(L_, -2) != 0); break;
        case LUA_TSTRING: {
          if (Result<> fits = take(lua_objlen(L_, -2)); !fits) {
            lua_pop(L_, 2);
            return std::move(fits).error();
          }
          if (!weighs_) key = Value(text(-2));
          break;
        }
        default: {
          const std::string shown = describe(L_, -2);
          lua_pop(L_, 2);
          return refuse(fmt::format("has {} as a key", shown), "keys must be strings, numbers or booleans");
        }
      }
      Result<Value> v = member(lua_gettop(L_), {0, lua_gettop(L_) - 1, false});
      if (!v) {
        lua_pop(L_, 2);
        return v;
      }
      lua_pop(L_, 1);
      if (!weighs_) out.pairs.emplace_back(std::move(key), std::move(*v));
    }
    return Value(std::move(out));
  }

  lua_State* L_;
  std::string what_;
  int root_;  // stack index of the whole
  std::vector<Step> path_;
  std::vector<const void*> open_;
  std::size_t bytes_left_, bytes_taken_ = 0;
  bool collected_ = false;
  // weighs_: only walks, copies nothing; stopped_: it has walked enough; weighed_: need not weigh
  bool weighs_ = false, stopped_ = false, weighed_ = false;
  std::size_t count_ = 0, tables_ = 0;
};

}  // namespace

Result<Value> to_value(lua_State* L, int index, std::string_view what, std::size_t* bytes) {
  luaL_checkstack(L, 8, "value");
  index = absolute(L, index);
  Encoder encoder(L, what, index);
  Result<Value> value = encoder.encode(index);
  if (bytes) *bytes = encoder.bytes_taken();
  return value;
}

void push_null(lua_State* L) { lua_pushlightuserdata(L, nullptr); }
bool is_null(lua_State* L, int index) { return lua_type(L, index) == LUA_TLIGHTUSERDATA && !lua_touserdata(L, index); }

void push_value(lua_State* L, const Value& v) {
  luaL_checkstack(L, 4, "value");
  if (const double* n = v.as_number()) {
    lua_pushnumber(L, *n);
  } else if (const std::string* s = v.as_string()) {
    push(L, std::string_view(*s));
  } else if (const bool* b = v.as_bool()) {
    lua_pushboolean(L, *b);
  } else if (const Value::Array* a = v.as_array()) {
    lua_createtable(L, static_cast<int>(a->size()), 0);
    for (std::size_t i = 0; i < a->size(); ++i) {
      if ((*a)[i].is_null()) push_null(L);
      else push_value(L, (*a)[i]);
      lua_rawseti(L, -2, static_cast<int>(i + 1));
    }
  } else if (const Value::Object* o = v.as_object()) {
    lua_createtable(L, 0, static_cast<int>(o->size()));
    for (const auto& [key, item] : *o) {
      push(L, std::string_view(key));
      push_value(L, item);
      lua_rawset(L, -3);
    }
  } else if (const Value::Map* m = v.as_map()) {
    lua_createtable(L, 0, static_cast<int>(m->pairs.size()));
    for (const auto& [key, item] : m->pairs) {
      push_value(L, key);
      push_value(L, item);
      lua_rawset(L, -3);
    }
  } else {
    lua_pushnil(L);
  }
}

}  // namespace rille::host
