// Values of scripts as rille_values; bytes, tables and handles in them are lent to the host program.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bindings/c/bridge.hpp"
#include "bindings/lua/compute/buffer.hpp"
#include "bindings/lua/compute/tensor.hpp"

namespace rille::capi {

using namespace rille::host;

namespace {

constexpr std::size_t copied_bytes_max = 64;  // longer strings inside tables are anchored
constexpr std::size_t values_per_check = 4096;

rille_value of_kind(rille_value_kind kind) {
  rille_value v{};
  v.kind = kind;
  return v;
}

rille_value of_bytes(const char* data, std::size_t size) {
  rille_value v = of_kind(RILLE_VALUE_BYTES);
  v.as.bytes = {data, size};
  return v;
}

// nil, booleans and numbers. False: the value is of another type.
bool lend_scalar(lua_State* L, int index, rille_value& v) {
  switch (lua_type(L, index)) {
    case LUA_TNONE:
    case LUA_TNIL: v.kind = RILLE_VALUE_NIL; return true;
    case LUA_TBOOLEAN: v.kind = RILLE_VALUE_BOOL, v.as.boolean = lua_toboolean(L, index); return true;
    case LUA_TNUMBER: v.kind = RILLE_VALUE_NUMBER, v.as.number = lua_tonumber(L, index); return true;
    default: return false;
  }
}

// Lends a table with a few scalars as fields and no items. Nothing in here can raise an error of Lua, so it needs no
// protected call, which would double its time. False: the table holds other values, and nothing was lent.
bool lend_record(lua_State* L, int table, Arena& arena, rille_value& out) {
  constexpr std::size_t fields_max = 16;
  rille_field fields[fields_max];
  std::size_t count = 0;
  const int top = lua_gettop(L);
  lua_pushnil(L);
  while (lua_next(L, table)) {
    rille_value value{};
    if (count == fields_max || lua_type(L, top + 1) != LUA_TSTRING || !lend_scalar(L, top + 2, value)) {
      lua_settop(L, top);
      return false;
    }
    std::size_t size = 0;
    const char* name = lua_tolstring(L, top + 1, &size);
    fields[count++] = {name, size, value};
    lua_settop(L, top + 1);
  }
  auto* made = arena.array<rille_table>(1);
  auto* copies = arena.array<rille_field>(count);
  *made = {nullptr, 0, count ? copies : nullptr, count};
  for (std::size_t i = 0; i < count; ++i) {
    copies[i] = fields[i];
    copies[i].name = arena.text(fields[i].name, fields[i].name_size);
  }
  out.kind = RILLE_VALUE_TABLE;
  out.as.table = made;
  return true;
}

}  // namespace

std::string ValueName::text() const {
  std::string out(what);
  if (number) out += fmt::format(" {}", number);
  if (!of.empty()) out += fmt::format(" of {}", of);
  return out;
}

std::string text_of(const std::vector<Step>& path) {
  std::string out;
  for (const Step& s : path) out += s.name ? "." + std::string(s.name, s.size) : fmt::format("[{}]", s.item);
  return out;
}

// Raises in Lua. Stack indices are absolute.
class Lender {
 public:
  Lender(lua_State* L, Bridge& bridge, Loan& loan, const ValueName& place)
      : L_(L), bridge_(bridge), loan_(loan), place_(place), path_(loan.path), open_(loan.open), fields_(loan.fields) {
    path_.clear(), open_.clear(), fields_.clear();
  }

  rille_value lend(int index) {
    count_value();
    rille_value v{};
    if (lend_scalar(L_, index, v)) return v;
    switch (lua_type(L_, index)) {
      case LUA_TSTRING: return text(index);
      case LUA_TTABLE: return table(index);
      case LUA_TFUNCTION: return function(index);
      case LUA_TLIGHTUSERDATA:
        if (is_null(L_, index)) return of_kind(RILLE_VALUE_NIL);
        break;
      case LUA_TUSERDATA: return object(index);
      default: break;
    }
    refuse(fmt::format("is {}, which cannot be passed to the host program", describe(L_, index)), things);
  }

 private:
  static constexpr const char* things =
      "pass numbers, strings, booleans, functions, tensors, buffers, and tables of them";

  [[noreturn]] void refuse(std::string why, std::string hint) {
    raise_invalid(L_, place_.text() + text_of(path_) + " " + why, std::move(hint));
  }

  void count_value() {
    if (values_left_-- == 0) refuse_number();
    if (values_left_ % values_per_check == 0) LuaHost::of(L_).check(L_);
  }
  [[noreturn]] void refuse_number() { refuse("holds too many values", "keep large data in buffers or tensors"); }

  // Holdings keep a slot for each of them, also after the call, so their number is limited.
  void count_lent() {
    if (loan_.functions.size() + loan_.handles.size() == lent_max)
      refuse(fmt::format("is beyond the {} functions, tensors and buffers of one call", lent_max),
             "pass them in several calls");
    loan_.arena.count(sizeof(Held) + 64);
  }

  rille_value number(int index) {
    count_value();
    rille_value v = of_kind(RILLE_VALUE_NUMBER);
    v.as.number = lua_tonumber(L_, index);
    return v;
  }

  rille_value text(int index) {
    std::size_t size = 0;
    const char* data = lua_tolstring(L_, index, &size);
    if (path_.empty()) return of_bytes(data, size);  // stays on the stack as long as the loan lasts
    if (size <= copied_bytes_max) return of_bytes(loan_.arena.text(data, size), size);
    if (loan_.anchor == LUA_NOREF) {
      lua_newtable(L_);
      loan_.anchor = luaL_ref(L_, LUA_REGISTRYINDEX);
    }
    lua_rawgeti(L_, LUA_REGISTRYINDEX, loan_.anchor);
    lua_pushvalue(L_, index);
    lua_rawseti(L_, -2, ++loan_.anchored);
    lua_pop(L_, 1);
    return of_bytes(data, size);
  }

  rille_value function(int index) {
    count_lent();
    lua_pushvalue(L_, index);
    const int ref = luaL_ref(L_, LUA_REGISTRYINDEX);
    rille_value v = of_kind(RILLE_VALUE_FUNCTION);
    v.as.function = bridge_.holdings().functions.add({&bridge_, ref});
    loan_.functions.push_back(v.as.function);
    return v;
  }

  rille_value object(int index) {
    count_lent();
    Held held;
    if (const auto* tensor = lua::test_tensor(L_, index)) {
      if (!*tensor) refuse("is a tensor that was freed", "pass a tensor that is in use");
      held.tensor = tensor->detach();
    } else if (auto memory = lua::test_buffer(L_, index)) {
      held.memory = std::move(memory);
    } else {
      refuse(fmt::format("is {}, which cannot be passed to the host program", describe(L_, index)), things);
    }
    rille_value v = of_kind(RILLE_VALUE_HANDLE);
    v.as.handle = bridge_.holdings().add(std::move(held));
    loan_.handles.push_back(v.as.handle);
    return v;
  }

  rille_value table(int t) {
    const void* id = lua_topointer(L_, t);
    if (std::find(open_.begin(), open_.end(), id) != open_.end())
      refuse("contains a table that refers back to itself", "pass tables without such cycles");
    if (open_.size() >= nesting_max) refuse(fmt::format("is nested deeper than {} tables", nesting_max), "");
    if (!open_.empty()) luaL_checkstack(L_, 6, "value");
    open_.push_back(id);
    auto* made = loan_.arena.array<rille_table>(1);
    made->item_count = lua_objlen(L_, t);
    made->items = made->item_count ? items(t, made->item_count) : nullptr;
    fields(t, *made);
    open_.pop_back();
    rille_value v = of_kind(RILLE_VALUE_TABLE);
    v.as.table = made;
    return v;
  }

  rille_value* items(int t, std::size_t count) {
    if (count > values_left_) refuse_number();
    auto* list = loan_.arena.array<rille_value>(count);
    for (std::size_t i = 0; i < count; ++i) {
      lua_rawgeti(L_, t, static_cast<int>(i + 1));
      if (lua_type(L_, -1) == LUA_TNUMBER) {  // the common case needs no path
        list[i] = number(-1);
        lua_pop(L_, 1);
        continue;
      }
      path_.push_back({nullptr, 0, i + 1});
      list[i] = lend(lua_gettop(L_));
      path_.pop_back();
      lua_pop(L_, 1);
    }
    return list;
  }

  void fields(int t, rille_table& made) {
    const std::size_t first = fields_.size();
    lua_pushnil(L_);
    while (lua_next(L_, t)) {
      const int value = lua_gettop(L_), key = value - 1;
      if (lua_type(L_, key) == LUA_TSTRING) {
        std::size_t size = 0;
        const char* name = lua_tolstring(L_, key, &size);
        rille_value v{};
        if (lua_type(L_, value) == LUA_TNUMBER) {
          v = number(value);
        } else {
          path_.push_back({name, size, 0});
          v = lend(value);
          path_.pop_back();
        }
        if (fields_.size() == fields_.capacity()) loan_.arena.count(2 * fields_.size() * sizeof(rille_field));
        fields_.push_back({loan_.arena.text(name, size), size, v});
      } else if (!is_item(key, made.item_count)) {
        refuse(fmt::format("has {} as a key", describe(L_, key)),
               "the keys of tables for the host program are 1, 2 .. and strings");
      }
      lua_pop(L_, 1);
    }
    made.field_count = fields_.size() - first;
    made.fields = nullptr;
    if (!made.field_count) return;
    auto* copy = loan_.arena.array<rille_field>(made.field_count);
    std::copy(fields_.begin() + static_cast<std::ptrdiff_t>(first), fields_.end(), copy);
    fields_.resize(first);
    made.fields = copy;
  }

  bool is_item(int key, std::size_t count) {
    if (lua_type(L_, key) != LUA_TNUMBER) return false;
    const double n = lua_tonumber(L_, key);
    return n >= 1 && n <= static_cast<double>(count) && n == std::floor(n);
  }

  lua_State* L_;
  Bridge& bridge_;
  Loan& loan_;
  const ValueName& place_;
  std::vector<Step>& path_;
  std::vector<const void*>& open_;
  std::vector<rille_field>& fields_;  // fields of the tables that are being read
  std::size_t values_left_ = values_max;
};

rille_value Bridge::lend_raising(lua_State* L, int index, Loan& loan, const ValueName& place) {
  return Lender(L, *this, loan, place).lend(absolute(L, index));
}

Result<rille_value> Bridge::lend(lua_State* L, int index, Loan& loan, const ValueName& place) {
  rille_value v{};
  if (lend_scalar(L, index, v)) return v;
  const int type = lua_type(L, index);
  if (type == LUA_TSTRING) {
    std::size_t size = 0;
    const char* data = lua_tolstring(L, index, &size);
    return of_bytes(data, size);
  }
  try {
    if (type == LUA_TTABLE && lend_record(L, absolute(L, index), loan.arena, v)) return v;
  } catch (const std::exception& e) { return error_from_exception(e); }  // MemoryRefused
  lua_pushvalue(L, index);
  RILLE_CHECK(protect_here(L, 1, 0, [&](lua_State* l) { v = lend_raising(l, 2, loan, place); }));
  return v;
}

Result<rille_value> lend_data(const Value& value, Arena& arena, const ValueName& place) {
  rille_value v{};
  if (const bool* b = value.as_bool()) {
    v = of_kind(RILLE_VALUE_BOOL);
    v.as.boolean = *b;
  } else if (const double* n = value.as_number()) {
    v = of_kind(RILLE_VALUE_NUMBER);
    v.as.number = *n;
  } else if (const std::string* s = value.as_string()) {
    v = of_bytes(s->c_str(), s->size());
  } else if (!value.is_null()) {
    v = of_kind(RILLE_VALUE_TABLE);
    auto* table = arena.array<rille_table>(1);
    *table = rille_table{};
    if (const Value::Array* a = value.as_array()) {
      auto* items = arena.array<rille_value>(a->size());
      for (std::size_t i = 0; i < a->size(); ++i) { RILLE_TRY(items[i], lend_data((*a)[i], arena, place)); }
      table->items = items, table->item_count = a->size();
    } else if (const Value::Object* o = value.as_object()) {
      auto* fields = arena.array<rille_field>(o->size());
      std::size_t i = 0;
      for (const auto& [name, item] : *o) {
        RILLE_TRY(rille_value inner, lend_data(item, arena, place));
        fields[i++] = {name.c_str(), name.size(), inner};
      }
      table->fields = fields, table->field_count = o->size();
    } else {
      return make_error(ErrorKind::invalid, place.text() + " has keys that are neither 1, 2 .. nor strings",
                        "the keys of tables for the host program are 1, 2 .. and strings");
    }
    v.as.table = table;
  }
  return v;
}

}  // namespace rille::capi
