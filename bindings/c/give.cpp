// rille_values of the host program as values of scripts, as data for the journal, and as copies.
#include <fmt/format.h>

#include "bindings/c/bridge.hpp"
#include "bindings/lua/compute/buffer.hpp"
#include "bindings/lua/compute/tensor.hpp"

namespace rille::capi {

using namespace rille::host;

namespace {

// Walks a value of the host program, checks it, and names the position of a refused value in the error.
class Walk {
 public:
  explicit Walk(const ValueName& place) : place_(place) {}

  Error refuse(const std::string& why, std::string hint = {}) const {
    return make_error(ErrorKind::invalid, place_.text() + text_of(path_) + " " + why, std::move(hint));
  }
  // Counts the value, and makes the checks that are the same for every use of it.
  Result<> enter(const rille_value& v) {
    if (++count_ > values_max)
      return refuse(fmt::format("holds more than {} values", values_max), "keep large data in buffers or tensors");
    switch (v.kind) {
      case RILLE_VALUE_INTEGER:
        if (v.as.integer > (std::int64_t{1} << 53) || v.as.integer < -(std::int64_t{1} << 53))
          return refuse(fmt::format("is {}: a script's numbers hold integers up to 2^53", v.as.integer));
        break;
      case RILLE_VALUE_BYTES:
        if (!v.as.bytes.data && v.as.bytes.size) return refuse("are bytes at NULL");
        break;
      case RILLE_VALUE_TABLE: return table(v.as.table);
      case RILLE_VALUE_NIL:
      case RILLE_VALUE_BOOL:
      case RILLE_VALUE_NUMBER:
      case RILLE_VALUE_HANDLE:
      case RILLE_VALUE_FUNCTION: break;
      default:
        return refuse(fmt::format("has the unknown kind {}", static_cast<int>(v.kind)), "set kind to a RILLE_VALUE_*");
    }
    return {};
  }
  template <class F>  // F: Result<>(const rille_value&)
  Result<> item(const rille_table& t, std::size_t i, F&& fn) {
    return inside({nullptr, 0, i + 1}, [&] { return fn(t.items[i]); });
  }
  template <class F>
  Result<> field(const rille_field& f, F&& fn) {
    return inside({f.name, f.name_size, 0}, [&] { return fn(f.value); });
  }

 private:
  Result<> table(const rille_table* t) const {
    if (!t) return refuse("is a table at NULL");
    if (path_.size() >= nesting_max)
      return refuse(fmt::format("is nested deeper than {} tables, or in itself", nesting_max));
    if ((!t->items && t->item_count) || (!t->fields && t->field_count)) return refuse("has items or fields at NULL");
    if (t->item_count > values_max || t->field_count > values_max)
      return refuse(fmt::format("holds more than {} values", values_max), "keep large data in buffers or tensors");
    for (std::size_t i = 0; i < t->field_count; ++i)
      if (!t->fields[i].name) return refuse("has a field without a name");
    return {};
  }
  template <class F>
  Result<> inside(Step step, F&& fn) {
    path_.push_back(step);
    Result<> r = fn();
    if (r) path_.pop_back();
    return r;
  }

  const ValueName& place_;
  std::vector<Step> path_;
  std::size_t count_ = 0;
};

}  // namespace

// Pushes a value; errors of Lua (memory) are raised.
class Giver {
 public:
  Giver(lua_State* L, Bridge& bridge, const ValueName& place) : L_(L), bridge_(bridge), walk_(place) {}

  Result<> give(const rille_value& v) {
    RILLE_CHECK(walk_.enter(v));
    switch (v.kind) {
      case RILLE_VALUE_BOOL: lua_pushboolean(L_, v.as.boolean != 0); break;
      case RILLE_VALUE_NUMBER: lua_pushnumber(L_, v.as.number); break;
      case RILLE_VALUE_INTEGER: lua_pushnumber(L_, static_cast<double>(v.as.integer)); break;
      case RILLE_VALUE_BYTES: lua_pushlstring(L_, v.as.bytes.size ? v.as.bytes.data : "", v.as.bytes.size); break;
      case RILLE_VALUE_TABLE: return table(*v.as.table);
      case RILLE_VALUE_HANDLE: return handle(v.as.handle);
      case RILLE_VALUE_FUNCTION: return function(v.as.function);
      default: lua_pushnil(L_);
    }
    return {};
  }

 private:
  Result<> table(const rille_table& t) {
    luaL_checkstack(L_, 6, "value");
    lua_createtable(L_, static_cast<int>(t.item_count), static_cast<int>(t.field_count));
    auto give_it = [this](const rille_value& v) { return give(v); };
    for (std::size_t i = 0; i < t.item_count; ++i) {
      if (t.items[i].kind == RILLE_VALUE_NUMBER) lua_pushnumber(L_, t.items[i].as.number);
      else RILLE_CHECK(walk_.item(t, i, give_it));
      lua_rawseti(L_, -2, static_cast<int>(i + 1));
    }
    for (std::size_t i = 0; i < t.field_count; ++i) {
      const rille_field& f = t.fields[i];
      lua_pushlstring(L_, f.name, f.name_size);
      if (f.value.kind == RILLE_VALUE_NUMBER) lua_pushnumber(L_, f.value.as.number);
      else RILLE_CHECK(walk_.field(f, give_it));
      lua_rawset(L_, -3);
    }
    return {};
  }

  Result<> handle(rille_handle number) {
    Result<Held> held = bridge_.holdings().find(number);
    if (!held) return walk_.refuse("is a handle that is no longer valid", held.error().hint);
    if (held->tensor) {
      if (!lua::is_of_state(L_, held->tensor))
        return walk_.refuse("is a tensor of another script", "view it, and wrap the memory for this script");
      lua::push_tensor(L_, held->tensor);
    } else if (held->dtype) {
      const auto graph = value_or_raise(L_, lua::graph_on(L_, "cpu"));
      lua::push_tensor(L_, value_or_raise(L_, tensor::from_memory(*graph, held->shape, *held->dtype, held->memory->data,
                                                                  held->memory)));
    } else {
      lua::push_buffer(L_, held->memory);
    }
    return {};
  }

  Result<> function(rille_script_function number) {
    Result<ScriptFunction*> f = bridge_.holdings().function(number);
    if (!f) return walk_.refuse("is a function that is no longer valid", f.error().hint);
    if ((*f)->bridge != &bridge_)
      return walk_.refuse("is a function of another script", "a function can be passed only to its own script");
    lua_rawgeti(L_, LUA_REGISTRYINDEX, (*f)->ref);
    return {};
  }

  lua_State* L_;
  Bridge& bridge_;
  Walk walk_;
};

void Bridge::push(lua_State* L, const rille_value& v, const ValueName& place) {
  if (v.kind == RILLE_VALUE_NUMBER) lua_pushnumber(L, v.as.number);
  else value_or_raise(L, Giver(L, *this, place).give(v));
}

Result<> Bridge::push_protected(lua_State* L, const rille_value& v, const ValueName& place) {
  switch (v.kind) {
    case RILLE_VALUE_NIL: lua_pushnil(L); return {};
    case RILLE_VALUE_BOOL: lua_pushboolean(L, v.as.boolean != 0); return {};
    case RILLE_VALUE_NUMBER: lua_pushnumber(L, v.as.number); return {};
    default: return protect_here(L, 0, 1, [&](lua_State* l) { push(l, v, place); });
  }
}

namespace {

class Copier {
 public:
  Copier(Copied& to, const ValueName& place) : to_(to), walk_(place) {}

  Result<> copy(const rille_value& v, rille_value& out) {
    RILLE_CHECK(walk_.enter(v));
    out = v;
    if (v.kind == RILLE_VALUE_BYTES) {
      out.as.bytes.data = to_.arena.text(v.as.bytes.data, v.as.bytes.size);
    } else if (v.kind == RILLE_VALUE_HANDLE) {
      if (!to_.holdings->hold(v.as.handle)) return walk_.refuse("is a handle that is no longer valid");
      to_.handles.push_back(v.as.handle);
    } else if (v.kind == RILLE_VALUE_TABLE) {
      return table(*v.as.table, out);
    }
    return {};
  }

 private:
  Result<> table(const rille_table& t, rille_value& out) {
    auto* made = to_.arena.array<rille_table>(1);
    auto* items = to_.arena.array<rille_value>(t.item_count);
    auto* fields = to_.arena.array<rille_field>(t.field_count);
    *made = {items, t.item_count, fields, t.field_count};
    for (std::size_t i = 0; i < t.item_count; ++i)
      RILLE_CHECK(walk_.item(t, i, [&](const rille_value& v) { return copy(v, items[i]); }));
    for (std::size_t i = 0; i < t.field_count; ++i) {
      fields[i] = {to_.arena.text(t.fields[i].name, t.fields[i].name_size), t.fields[i].name_size, {}};
      RILLE_CHECK(walk_.field(t.fields[i], [&](const rille_value& v) { return copy(v, fields[i].value); }));
    }
    out.as.table = made;
    return {};
  }

  Copied& to_;
  Walk walk_;
};

Result<> data_of(const rille_value& v, Walk& walk, Value& out);

Result<> data_of_table(const rille_table& t, Walk& walk, Value& out) {
  if (t.item_count && t.field_count)
    return walk.refuse("has items and fields: the journal takes one or the other", "pass two tables");
  if (!t.field_count) {
    Value::Array list(t.item_count);
    for (std::size_t i = 0; i < t.item_count; ++i)
      RILLE_CHECK(walk.item(t, i, [&](const rille_value& v) { return data_of(v, walk, list[i]); }));
    out = Value(std::move(list));
    return {};
  }
  Value::Object object;
  for (std::size_t i = 0; i < t.field_count; ++i) {
    Value& made = object[std::string(t.fields[i].name, t.fields[i].name_size)];
    RILLE_CHECK(walk.field(t.fields[i], [&](const rille_value& v) { return data_of(v, walk, made); }));
  }
  out = Value(std::move(object));
  return {};
}

Result<> data_of(const rille_value& v, Walk& walk, Value& out) {
  RILLE_CHECK(walk.enter(v));
  switch (v.kind) {
    case RILLE_VALUE_BOOL: out = Value(v.as.boolean != 0); break;
    case RILLE_VALUE_NUMBER: out = Value(v.as.number); break;
    case RILLE_VALUE_INTEGER: out = Value(v.as.integer); break;
    case RILLE_VALUE_BYTES: out = Value(std::string(v.as.bytes.size ? v.as.bytes.data : "", v.as.bytes.size)); break;
    case RILLE_VALUE_TABLE: return data_of_table(*v.as.table, walk, out);
    case RILLE_VALUE_HANDLE:
    case RILLE_VALUE_FUNCTION:
      return walk.refuse(v.kind == RILLE_VALUE_HANDLE ? "is a handle, which the journal cannot store"
                                                      : "is a function, which the journal cannot store",
                         "declare the function RILLE_PURE, or RILLE_VOLATILE for use in a step");
    default: out = Value();
  }
  return {};
}

}  // namespace

Copied::~Copied() {
  for (const rille_handle h : handles) (void)holdings->drop(h);
}

Result<std::shared_ptr<Copied>> copy(const rille_value& value, std::shared_ptr<Holdings> holdings,
                                     const ValueName& place) {
  auto made = std::make_shared<Copied>(std::move(holdings));
  RILLE_CHECK(Copier(*made, place).copy(value, made->value));
  return made;
}

Result<Value> to_data(const rille_value& value, const ValueName& place) {
  Walk walk(place);
  Value out;
  RILLE_CHECK(data_of(value, walk, out));
  return out;
}

}  // namespace rille::capi
