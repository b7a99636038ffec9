#include "bindings/host/object.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bindings/host/await.hpp"
#include "bindings/host/errors.hpp"
#include "bindings/host/object_class.hpp"
#include "bindings/host/state.hpp"
#include "runtime/core/base/did_you_mean.hpp"

namespace rille::host {

namespace {

char class_mark;  // its address is the key of ClassInfo in the metatable

struct ClassInfo {
  const char* name;
  bool (*field)(lua_State*, std::string_view);
  lua_CFunction element;
  ObjectEncoder encode;
  std::size_t count;
  const char** texts() { return reinterpret_cast<const char**>(this + 1); }  // they follow in the same userdata
  std::vector<std::string> names() { return {texts(), texts() + count}; }    // methods and fields
};

ClassInfo* class_of(lua_State* L, int index) {
  if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index)) return nullptr;
  lua_pushlightuserdata(L, &class_mark);
  lua_rawget(L, -2);
  auto* info = static_cast<ClassInfo*>(lua_touserdata(L, -1));
  lua_pop(L, 2);
  return info;
}

// The __index of objects. Upvalue 1: the methods; upvalue 2: the class. Looks for a method, then a field, and otherwise
// raises a helpful error. In a class without fields it is the __index of the methods table instead, which is faster:
// then it is called only for missing names.
int index_object(lua_State* L) {
  lua_settop(L, 2);
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(1));
  if (!lua_isnil(L, -1)) return 1;
  lua_settop(L, 2);
  auto* info = static_cast<ClassInfo*>(lua_touserdata(L, lua_upvalueindex(2)));
  if (lua_type(L, 2) != LUA_TSTRING) {
    if (info->element) return info->element(L);
    raise_invalid(L, fmt::format("{} is not a table, so it has no element [{}]", info->name, describe(L, 2)));
  }
  std::string_view key = check_text(L, 2, info->name);
  if (info->field && info->field(L, key)) return 1;
  const std::vector<std::string> names = info->names();
  std::string near = did_you_mean(key, names), list;
  for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
  raise_invalid(L, fmt::format("{} has no field or method '{}'", info->name, key),
                near.empty() ? "it has: " + list : fmt::format("did you mean '{}'?", near));
}

int newindex_object(lua_State* L) { raise_invalid(L, fmt::format("the fields of {} cannot be set", describe(L, 1))); }

int default_tostring(lua_State* L) {
  push(L, type_name(L, 1));
  return 1;
}

// Pushes the metatable of the class; nil if there is no such class.
void push_class(lua_State* L, const void* key) {
  get_registry(L, key);
  if (!lua_isfunction(L, -1)) return;
  lua_call(L, 0, 0);
  get_registry(L, key);
}

}  // namespace

ObjectEncoder object_encoder(lua_State* L, int index) {
  ClassInfo* info = class_of(L, index);
  return info ? info->encode : nullptr;
}

std::optional<std::uint64_t> object_number(lua_State* L, int index) {
  if (!class_of(L, index)) return {};
  return static_cast<detail::ObjectHeader*>(lua_touserdata(L, index))->number;
}

std::vector<std::string> object_names(lua_State* L, int index) {
  ClassInfo* info = class_of(L, index);
  return info ? info->names() : std::vector<std::string>();
}

namespace detail {

void define_class(lua_State* L, const void* key, const ClassSpec& spec, lua_CFunction gc) {
  lua_createtable(L, 0, static_cast<int>(spec.metamethods.size()) + 8);
  int mt = lua_gettop(L);
  const std::size_t methods = spec.methods.size() + spec.async_methods.size(), names = methods + spec.fields.size();
  void* memory = lua_newuserdata(L, sizeof(ClassInfo) + names * sizeof(const char*));
  auto* info = new (memory) ClassInfo{spec.name, spec.field, spec.element, spec.encode, names};
  const char** name = info->texts();
  lua_pushlightuserdata(L, &class_mark);
  lua_pushvalue(L, -2);
  lua_rawset(L, mt);
  lua_createtable(L, 0, static_cast<int>(methods));
  for (const Function& m : spec.methods) {
    lua_pushcfunction(L, m.function);
    lua_setfield(L, -2, m.name);
    *name++ = m.name;
  }
  for (const Function& m : spec.async_methods) {
    set_async(L, m.name, m.function);
    *name++ = m.name;
  }
  std::copy(spec.fields.begin(), spec.fields.end(), name);
  lua_pushvalue(L, -1);
  lua_setfield(L, mt, "__methods");
  lua_insert(L, -2);  // stack: methods, then ClassInfo
  if (!spec.field) {
    lua_pushvalue(L, -2);
    lua_setfield(L, mt, "__index");
  }
  lua_pushcclosure(L, index_object, 2);
  if (spec.field) {
    lua_setfield(L, mt, "__index");
  } else {
    lua_getfield(L, mt, "__methods");
    lua_newtable(L);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pop(L, 2);
  }
  lua_pushcfunction(L, newindex_object);
  lua_setfield(L, mt, "__newindex");
  lua_pushcfunction(L, default_tostring);
  lua_setfield(L, mt, "__tostring");
  for (const Function& m : spec.metamethods) {
    lua_pushcfunction(L, m.function);
    lua_setfield(L, mt, m.name);
  }
  lua_pushcfunction(L, gc);
  lua_setfield(L, mt, "__gc");
  set_field(L, "__name", spec.name);
  set_field(L, "__metatable", spec.name);
  set_registry(L, key);
}

void define_later(lua_State* L, const void* key, lua_CFunction define) {
  lua_pushcfunction(L, define);
  set_registry(L, key);
}

void* new_object(lua_State* L, const void* key, std::size_t size) {
  push_class(L, key);
  if (lua_isnil(L, -1)) raise(L, make_error(ErrorKind::internal, "an object's class is not defined in this state"));
  lua_pop(L, 1);
  auto* header = static_cast<ObjectHeader*>(lua_newuserdata(L, size));
  header->number = ++LuaState::of(L).objects_made;
  return header;
}

void finish_object(lua_State* L, const void* key) {
  get_registry(L, key);
  lua_setmetatable(L, -2);
}

void* test_object(lua_State* L, int index, const void* key) {
  void* p = lua_touserdata(L, index);
  if (!p || lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index)) return nullptr;
  get_registry(L, key);
  bool same = lua_rawequal(L, -1, -2) != 0;
  lua_pop(L, 2);
  return same ? p : nullptr;
}

void wrong_object(lua_State* L, int index, const void* key, const char* what) {
  push_class(L, key);
  lua_getfield(L, -1, "__name");
  std::string wanted = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "object";
  lua_pop(L, 2);
  std::string hint = index == 1 && !lua_isuserdata(L, 1) ? "methods are called with a colon: object:method(...)" : "";
  raise_invalid(L, fmt::format("{}: expected {}, got {}", what, wanted, describe(L, index)), hint);
}

}  // namespace detail

}  // namespace rille::host
