#include "bindings/lua/compute/module_place.hpp"

#include <fmt/format.h>

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

namespace {

constexpr int frames_max = 200, depth_max = 6;

// nn.class marks its metatables with __module.
bool is_module(lua_State* L, int index) {
  if (!lua_istable(L, index) || !luaL_getmetafield(L, index, "__module")) return false;
  lua_pop(L, 1);
  return true;
}

bool is_plain_table(lua_State* L, int index) {
  if (!lua_istable(L, index)) return false;
  if (!lua_getmetatable(L, index)) return true;
  lua_pop(L, 1);
  return false;
}

// The path by which the table at `from` reaches the module at `to`: "layers.1"; "": it does not.
std::string path_to(lua_State* L, int from, int to, int depth) {
  if (depth == 0 || !lua_checkstack(L, 6)) return "";
  for (lua_pushnil(L); lua_next(L, from); lua_pop(L, 1)) {
    const int value = lua_gettop(L);
    const bool found = lua_rawequal(L, value, to) != 0;
    const std::string inner =
        !found && (is_module(L, value) || is_plain_table(L, value)) ? path_to(L, value, to, depth - 1) : "";
    if (!found && inner.empty()) continue;
    const bool text = lua_type(L, -2) == LUA_TSTRING;
    const std::string key = text ? lua_tostring(L, -2) : fmt::format("{:g}", lua_tonumber(L, -2));
    lua_pop(L, 2);
    return inner.empty() ? key : key + "." + inner;
  }
  return "";
}

std::string class_of(lua_State* L, int module) {
  std::string name = "a layer";
  if (luaL_getmetafield(L, module, "__name")) {
    if (const char* text = lua_tostring(L, -1)) name = text;
    lua_pop(L, 1);
  }
  lua_pushliteral(L, "weight");
  lua_rawget(L, module);
  if (const Tensor* weight = test_tensor(L, -1); weight && *weight && name == "Linear" && weight->rank() == 2)
    name += fmt::format(" {} -> {}", weight->size(1), weight->size(0));
  lua_pop(L, 1);
  return name;
}

// Pushes the modules that are being called, the innermost first, at most two.
int push_modules(lua_State* L) {
  int count = 0;
  lua_Debug ar;
  for (int level = 0; count < 2 && level < frames_max && lua_getstack(L, level, &ar); ++level) {
    const char* name = lua_getlocal(L, &ar, 1);
    if (!name) continue;
    const bool is_new = is_module(L, -1) && (count == 0 || !lua_rawequal(L, -1, -2));
    if (is_new) ++count;
    else lua_pop(L, 1);
  }
  return count;
}

}  // namespace

std::string module_place(lua_State* L) {
  if (!lua_checkstack(L, 8)) return "";
  const int top = lua_gettop(L);
  const int count = push_modules(L);
  std::string place;
  if (count > 0) place = class_of(L, top + 1);
  if (count > 1)
    if (const std::string path = path_to(L, top + 2, top + 1, depth_max); !path.empty())
      place = fmt::format("{}{} ({})", path.find_first_not_of("0123456789") == path.npos ? "layer " : "", path, place);
  lua_settop(L, top);
  return place;
}

}  // namespace rille::lua
