#include "bindings/host/errors.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include "bindings/host/bind.hpp"
#include "bindings/host/codec.hpp"
#include "bindings/host/host.hpp"
#include "bindings/host/keys.hpp"

namespace rille::host {

namespace {

char error_metatable;

constexpr int frames_max = 40;
constexpr int frames_read_max = 2000;  // of the script and of Rille's Lua

int error_tostring(lua_State* L) {
  push(L, is_error(L, 1) ? error_from_table(L, 1).summary() : std::string("rille.Error"));
  return 1;
}

int error_concat(lua_State* L) {
  std::string out;
  for (int i = 1; i <= 2; ++i) {
    if (is_error(L, i)) out += error_from_table(L, i).summary();
    else if (lua_type(L, i) == LUA_TSTRING || lua_type(L, i) == LUA_TNUMBER) out += lua_tostring(L, i);
    else raise_invalid(L, "cannot concatenate an error with " + describe(L, i));
  }
  push(L, out);
  return 1;
}

bool is_ours(const lua_Debug& ar) { return ar.what[0] == 'C' || std::strncmp(ar.source, "=[rille", 7) == 0; }

std::string frame_text(lua_State* L, lua_Debug& ar) {
  std::string out = "  ";
  if (ar.what[0] == 'C') out += ar.name ? fmt::format("[C]: in function '{}'", ar.name) : "[C]";
  else if (std::string_view(ar.what) == "main")
    out += fmt::format("{}:{}: in the main chunk", ar.short_src, ar.currentline);
  else if (ar.name) out += fmt::format("{}:{}: in function '{}'", ar.short_src, ar.currentline, ar.name);
  else out += fmt::format("{}:{}: in the function at line {}", ar.short_src, ar.currentline, ar.linedefined);
  (void)L;
  return out;
}

}  // namespace

void install_errors(lua_State* L) {
  lua_newtable(L);
  set_functions(L, {{"__tostring", bind<error_tostring>}, {"__concat", bind<error_concat>}});
  set_field(L, "__name", "rille.Error");
  set_field(L, "__metatable", "rille.Error");
  set_registry(L, &error_metatable);
}

namespace {

constexpr int causes_max = 50;

void push_with_causes(lua_State* L, Error error, int deep) {
  luaL_checkstack(L, 8, "error");
  // the cause is pushed separately, as an error table
  const std::shared_ptr<const Error> cause = std::exchange(error.cause, nullptr);
  push_value(L, error_to_value(error));
  if (cause && deep < causes_max) {
    push_with_causes(L, *cause, deep + 1);
    lua_setfield(L, -2, "cause");
  }
  get_registry(L, &error_metatable);
  lua_setmetatable(L, -2);
}

}  // namespace

void push_error(lua_State* L, const Error& error) { push_with_causes(L, error, 0); }

bool is_error(lua_State* L, int index) {
  if (lua_type(L, index) != LUA_TTABLE || !lua_getmetatable(L, index)) return false;
  get_registry(L, &error_metatable);
  bool same = lua_rawequal(L, -1, -2) != 0;
  lua_pop(L, 2);
  return same;
}

namespace {

constexpr std::size_t text_bytes_max = 16 << 10, name_bytes_max = 1 << 10, cause_text_bytes_max = 2 << 10;

// A field of an error. Errors are copied, journaled and shown outside of the script's memory limit, so their texts are
// cut at a fixed size.
std::string bounded(const char* text, std::size_t size, std::size_t most = text_bytes_max) {
  if (size <= most + 64) return std::string(text, size);  // also a text that was cut before
  return fmt::format("{}.. ({} bytes)", std::string_view(text, most), size);
}

std::string raw_text(lua_State* L, int index, const char* key, std::size_t most = text_bytes_max) {
  lua_pushstring(L, key);
  lua_rawget(L, index);
  std::size_t size = 0;
  const char* s =
      lua_type(L, -1) == LUA_TSTRING || lua_type(L, -1) == LUA_TNUMBER ? lua_tolstring(L, -1, &size) : nullptr;
  std::string out = s ? bounded(s, size, most) : std::string();
  lua_pop(L, 1);
  return out;
}

double raw_number(lua_State* L, int index, const char* key, double otherwise) {
  lua_pushstring(L, key);
  lua_rawget(L, index);
  double n = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : otherwise;
  lua_pop(L, 1);
  return n;
}

}  // namespace

namespace {

// Reads only the known fields, so that other values that a script put into the error table do no harm.
Error error_with_causes(lua_State* L, int index, int deep) {
  luaL_checkstack(L, 8, "error");
  index = absolute(L, index);
  Value v;
  for (const char* key : {"message", "hint", "traceback"})
    if (std::string text = raw_text(L, index, key, deep ? cause_text_bytes_max : text_bytes_max); !text.empty())
      v.set(key, std::move(text));
  for (const char* key : {"kind", "provider", "operation", "code", "request_id", "resource"})
    if (std::string text = raw_text(L, index, key, name_bytes_max); !text.empty()) v.set(key, std::move(text));
  v.set("retry_after", raw_number(L, index, "retry_after", -0.001))
      .set("http_status", raw_number(L, index, "http_status", 0));
  lua_pushstring(L, "retryable");
  lua_rawget(L, index);
  v.set("retryable", lua_toboolean(L, -1) != 0);
  lua_pop(L, 1);
  Error e = error_from_value(v);
  lua_pushstring(L, "cause");
  lua_rawget(L, index);
  if (deep < causes_max && is_error(L, -1))
    e.cause = std::make_shared<const Error>(error_with_causes(L, lua_gettop(L), deep + 1));
  lua_pop(L, 1);
  return e;
}

}  // namespace

Error error_from_table(lua_State* L, int index) { return error_with_causes(L, index, 0); }

namespace {

// The table as text: as JSON, or in Lua's notation if JSON cannot express its keys.
std::string table_text(const Value& v) {
  const Value::Map* map = v.as_map();
  if (!map) return v.to_json();
  std::string out;
  for (const auto& [key, value] : map->pairs) {
    out += out.empty() ? "{ " : ", ";
    if (const std::string* name = key.as_string()) out += *name + " = " + table_text(value);
    else out += "[" + key.to_json() + "] = " + table_text(value);
  }
  return out + " }";
}

// The way out of Lua's own errors that people from Python meet; "" for the others.
std::string hint_of(std::string_view message) {
  const auto has = [message](std::string_view part) { return message.find(part) != message.npos; };
  if (has("attempt to compare userdata with number") || has("attempt to compare number with userdata"))
    return "tensors are compared by methods, element by element: x:lt(2), x:gt(2); a single value with x:item() < 2";
  if (has("attempt to call") && has("(a userdata value)"))
    return "its methods are called with a colon; a kernel: k:launch({ grid = blocks, block = threads }, ...)";
  if (const std::size_t at = message.find("attempt to index"); at != message.npos && has("(a function value)")) {
    const std::size_t begin = message.find('\'', at) + 1, end = message.find('\'', begin);
    if (begin == 0 || end == message.npos) return "it is a function: call it first, a method with a colon";
    return fmt::format("'{0}' is a function: call it first, a method with a colon: x:{0}()[1]",
                       message.substr(begin, end - begin));
  }
  return {};
}

}  // namespace

Error to_error(lua_State* L, int index) {
  index = absolute(L, index);
  if (is_error(L, index)) return error_from_table(L, index);
  Error e = make_error(ErrorKind::invalid, "");
  e.code = "lua_error";
  if (lua_type(L, index) == LUA_TSTRING) {
    std::size_t size = 0;
    const char* s = lua_tolstring(L, index, &size);
    e.message = bounded(s, size);
    if (e.message == "not enough memory") return LuaState::of(L).memory_error();
    if (e.message == "C++ exception") e.kind = ErrorKind::internal;
    e.hint = hint_of(e.message);
    return e;
  }
  if (lua_type(L, index) == LUA_TTABLE) {
    if (std::string message = raw_text(L, index, "message"); !message.empty()) {
      Error plain = error_from_table(L, index);
      if (raw_text(L, index, "kind").empty()) plain.kind = ErrorKind::invalid;
      return plain;
    }
    Result<Value> v = to_value(L, index, "error");
    if (v) e.message = "the script raised " + table_text(*v).substr(0, 500);
  }
  if (e.message.empty()) e.message = "the script raised " + describe(L, index);
  return e;
}

Error caught_error(lua_State* L, int index) {
  index = absolute(L, index);
  Error e = to_error(L, index);
  Fiber* f = LuaHost::of(L).current();
  if (!e.traceback.empty() || !f) return e;
  StackGuard guard(L);
  get_registry(L, &key_data);
  lua_rawgeti(L, -1, static_cast<int>(f->id));
  if (!lua_istable(L, -1)) return e;
  lua_getfield(L, -1, "trace_error");
  lua_getfield(L, -2, "trace");
  if (lua_rawequal(L, -2, index) && lua_type(L, -1) == LUA_TSTRING) e.traceback = lua_tostring(L, -1);
  return e;
}

Error error_from_exception(const std::exception& e) {
  if (const auto* refused = dynamic_cast<const MemoryRefused*>(&e)) return refused->error;
  if (dynamic_cast<const std::bad_alloc*>(&e))
    return make_error(ErrorKind::memory, "out of memory", "free some memory, or work in smaller pieces");
  return make_error(ErrorKind::internal, std::string("a bug in Rille: ") + e.what());
}

std::string traceback(lua_State* of, int level, bool full) {
  std::string out;
  int shown = 0, read = 0;
  bool all = full || (LuaState::of(of).owner && LuaHost::of(of).options().full_tracebacks);
  for (lua_State* L = of; L;) {
    lua_Debug ar;
    for (; lua_getstack(L, level, &ar); ++level) {
      if (++read > frames_read_max) return out + "\n  ...";
      lua_getinfo(L, "Snl", &ar);
      if (is_ours(ar) && !all) continue;
      if (shown++ == frames_max) return out + "\n  ...";
      if (!out.empty()) out += '\n';
      out += frame_text(L, ar);
    }
    L = parent_coroutine(L);
    level = 0;
    ++read;
  }
  return out;
}

std::string call_line(std::string_view call) { return fmt::format("  in the call '{}'", call); }

bool ends_in_call(std::string_view traceback) {
  return traceback.substr(traceback.rfind('\n') + 1).starts_with("  in the call '");
}

std::string script_position(lua_State* of) {
  for (lua_State* L = of; L; L = parent_coroutine(L)) {
    lua_Debug ar;
    for (int level = 0; lua_getstack(L, level, &ar); ++level) {
      lua_getinfo(L, "Sl", &ar);
      if (!is_ours(ar)) return fmt::format("{}:{}", ar.short_src, ar.currentline);
    }
  }
  return "?";
}

}  // namespace rille::host
