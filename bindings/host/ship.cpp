#include "bindings/host/ship.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>

#include "bindings/host/bytecode.hpp"
#include "bindings/host/host.hpp"
#include "bindings/host/keys.hpp"
#include "bindings/host/stdlib_table.hpp"
#include "runtime/core/base/id.hpp"

namespace rille::host {

namespace {

constexpr std::size_t payload_bytes_max = 12 << 20;
constexpr const char* build = LUAJIT_VERSION " gc64 1";

// Whether the `size` bytes at `at` are a whole word: no letter, digit or _ touches them.
bool is_word(std::string_view text, std::size_t at, std::size_t size) {
  auto letter = [&](std::size_t i) { return std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_'; };
  return (at == 0 || !letter(at - 1)) && (at + size == text.size() || !letter(at + size));
}

// The position of the word if it occurs exactly once in the line; otherwise npos.
std::size_t only_word(std::string_view line, std::string_view word) {
  std::size_t found = std::string_view::npos;
  for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    if (!is_word(line, at, word.size())) continue;
    if (found != std::string_view::npos) return std::string_view::npos;
    found = at;
  }
  return found;
}

// The text of a function, as exactly as line numbers tell, and its index among the functions that begin on the same
// line. The result does not depend on the function's position in the file.
std::string text_of(LuaHost& host, lua_State* L, int index, std::string_view code) {
  lua_Debug ar;
  lua_pushvalue(L, index);
  lua_getinfo(L, ">S", &ar);
  auto chunk = host.chunks().find(ar.source);
  if (chunk == host.chunks().end()) return fmt::format("{}:{}", ar.source, ar.linedefined);
  std::string_view source = host.source_of(chunk->second);
  std::string text;
  for (int line = 1; line <= ar.lastlinedefined && !source.empty(); ++line) {
    std::size_t end = source.find('\n');
    std::string_view one = source.substr(0, end);
    source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
    if (line < ar.linedefined) continue;
    std::size_t from = line == ar.linedefined ? only_word(one, "function") : std::string_view::npos;
    std::size_t last = line == ar.lastlinedefined ? only_word(one, "end") : std::string_view::npos;
    if (last != std::string_view::npos) one = one.substr(0, last + 3);
    if (from != std::string_view::npos && from < one.size()) one.remove_prefix(from);
    text.append(one).push_back('\n');
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, chunk->second.function);
  std::string whole = dump_function(L, -1);
  lua_pop(L, 1);
  auto mine = read_prototypes(code), all = read_prototypes(whole);
  int number = 0;
  for (std::size_t i = 0; mine && all && i < all->size() && (*all)[i].bytes != mine->back().bytes; ++i)
    number += (*all)[i].first_line == mine->back().first_line;
  return text + fmt::format("function {} of its line\n", number);
}

class Shipper {
 public:
  Shipper(lua_State* L, std::string what) : L_(L), what_(std::move(what)) { name_everything(); }

  // A hash of the texts of all shipped functions; call after run().
  std::string identity() const { return sha256_hex(texts_); }

  Result<Value> run(int index) {
    RILLE_TRY(std::size_t main, function(index));
    Value payload;
    payload.set("build", build).set("main", static_cast<std::int64_t>(main));
    payload.set("functions", Value(std::move(functions_))).set("cells", Value(std::move(cells_)));
    return payload;
  }

 private:
  // Maps the addresses of known functions and tables to the names by which the other process finds them.
  void name_everything() {
    get_registry(L_, &key_core);
    lua_getfield(L_, -1, "store");
    name_table(lua_gettop(L_), "g", "", 1);
    lua_pop(L_, 1);
    lua_getfield(L_, -1, "loaded");
    name_table(lua_gettop(L_), "m", "", 0);
    lua_pop(L_, 1);
    lua_getfield(L_, -1, "words");
    name_table(lua_gettop(L_), "r", "", 0);
    lua_pop(L_, 2);
    get_registry(L_, &key_rille);
    known_[lua_topointer(L_, -1)] = {"rille", ""};
    lua_pop(L_, 1);
    get_registry(L_, &key_env);
    known_[lua_topointer(L_, -1)] = {"env", ""};
    lua_pop(L_, 1);
  }

  void name_table(int t, const char* kind, const std::string& prefix, int depth) {
    lua_pushnil(L_);
    while (lua_next(L_, t)) {
      if (lua_type(L_, -2) == LUA_TSTRING && (lua_isfunction(L_, -1) || lua_istable(L_, -1))) {
        std::string name = prefix + lua_tostring(L_, -2);
        // skip globals that the script has set: the other process does not know them
        bool ours = kind[0] != 'g' || depth == 0 || is_builtin(lua_gettop(L_));
        if (ours) known_.try_emplace(lua_topointer(L_, -1), kind, name);
        if (ours && depth > 0 && lua_istable(L_, -1)) name_table(lua_gettop(L_), kind, name + ".", depth - 1);
      }
      lua_pop(L_, 1);
    }
  }

  bool is_builtin(int index) {
    if (lua_istable(L_, index)) return library(index);
    lua_Debug ar;
    lua_pushvalue(L_, index);
    lua_getinfo(L_, ">S", &ar);
    return ar.what[0] == 'C' || std::strncmp(ar.source, "=[rille", 7) == 0;
  }

  bool library(int index) {
    get_registry(L_, &key_core);
    lua_getfield(L_, -1, "loaded");
    bool found = false;
    for (const char* name : {"string", "table", "math", "coroutine", "bit", "io", "os", "debug"}) {
      lua_getfield(L_, -1, name);
      found = found || lua_rawequal(L_, -1, index);
      lua_pop(L_, 1);
    }
    lua_pop(L_, 2);
    return found;
  }

  Error refuse(const std::string& problem, const char* hint, int function_index) {
    lua_Debug ar;
    lua_pushvalue(L_, function_index);
    lua_getinfo(L_, ">S", &ar);
    return make_error(ErrorKind::invalid,
                      fmt::format("{}: the function at {}:{} {}", what_, ar.short_src, ar.linedefined, problem), hint);
  }

  Result<std::size_t> function(int index) {
    luaL_checkstack(L_, 10, "call");
    if (auto known = function_numbers_.find(lua_topointer(L_, index)); known != function_numbers_.end())
      return known->second;
    if (lua_iscfunction(L_, index))
      return make_error(ErrorKind::invalid, what_ + ": a builtin function cannot be sent to an instance directly",
                        "wrap the builtin in a Lua function: function(...) return f(...) end");
    std::string code = dump_function(L_, index);
    RILLE_TRY(std::vector<Prototype> protos, read_prototypes(code));
    std::vector<bool> assigned = protos.back().assigned;
    std::size_t number = functions_.size();
    function_numbers_[lua_topointer(L_, index)] = number;
    functions_.emplace_back();
    texts_ += text_of(LuaHost::of(L_), L_, index, code);
    Value::Array cells;
    for (int i = 1; const char* name = lua_getupvalue(L_, index, i); ++i) {
      if (static_cast<std::size_t>(i) <= assigned.size() && assigned[static_cast<std::size_t>(i - 1)]) {
        std::string problem = fmt::format("assigns '{}', which is declared outside of it", name);
        lua_pop(L_, 1);
        return refuse(problem, "the variable would change only on the instance: return the value instead", index);
      }
      Result<std::size_t> c = cell(index, i, name);
      lua_pop(L_, 1);
      if (!c) return std::move(c).error();
      cells.emplace_back(static_cast<std::int64_t>(*c));
    }
    functions_[number].set("code", std::move(code)).set("cells", Value(std::move(cells)));
    return number;
  }

  // Returns the number of the upvalue's cell. The upvalue's value is on top of the stack.
  Result<std::size_t> cell(int function_index, int i, const char* name) {
    const void* id = lua_upvalueid(L_, function_index, i);
    if (auto known = cell_numbers_.find(id); known != cell_numbers_.end()) return known->second;
    std::size_t number = cells_.size();
    cell_numbers_[id] = number;
    cells_.emplace_back();
    RILLE_TRY(Value content, cell_content(function_index, name));
    cells_[number] = std::move(content);
    return number;
  }

  Result<Value> cell_content(int function_index, const char* name) {
    int value = lua_gettop(L_);
    Value out;
    if (lua_istable(L_, value) || lua_isfunction(L_, value)) {
      if (auto known = known_.find(lua_topointer(L_, value)); known != known_.end()) {
        out.set("k", known->second.first).set("n", known->second.second);
        return out;
      }
    }
    if (lua_isfunction(L_, value)) {
      if (lua_iscfunction(L_, value))
        return refuse(fmt::format("uses '{}', a builtin function that cannot be found by name on the instance", name),
                      "look the builtin up inside the function", function_index);
      RILLE_TRY(std::size_t number, function(value));
      out.set("k", "f").set("i", static_cast<std::int64_t>(number));
      return out;
    }
    Result<Value> data = to_value(L_, value, "'" + std::string(name) + "'");
    if (!data)
      return refuse(fmt::format("uses '{}', which cannot be sent to an instance: {}", name, data.error().message),
                    "pass data in args, and create objects inside the function", function_index);
    out.set("k", "v").set("v", std::move(*data));
    return out;
  }

  lua_State* L_;
  std::string what_;
  Value::Array functions_, cells_;
  std::string texts_;
  std::map<const void*, std::size_t> function_numbers_, cell_numbers_;
  std::map<const void*, std::pair<std::string, std::string>> known_;
};

// Adds the modules that the source requires by a literal name, as `require "x"` or `require('x')`, and the modules that
// these require.
void gather_modules(LuaHost& host, const std::string& source, Value& bundle) {
  for (std::size_t at = source.find("require"); at != std::string::npos; at = source.find("require", at + 7)) {
    std::size_t p = source.find_first_not_of(" \t(", at + 7);
    if (p == std::string::npos || (source[p] != '"' && source[p] != '\'')) continue;
    std::size_t end = source.find(source[p], p + 1);
    if (end == std::string::npos || end - p > 200) continue;
    std::string name = source.substr(p + 1, end - p - 1);
    if (name == "rille" || stdlib_source(name) || !bundle[name].is_null()) continue;
    Result<std::string> module = host.module_source(name);
    // the name is a library or stands in a comment; if the function needs it, the other process raises an error
    if (!module) continue;
    bundle.set(name, *module);
    gather_modules(host, *module, bundle);
  }
}

}  // namespace

Result<Shipped> ship(lua_State* L, int index, const std::string& what) {
  LuaHost& host = LuaHost::of(L);
  index = absolute(L, index);
  StackGuard guard(L);
  Shipped out;
  Value bundle{Value::Object{}};
  for (const auto& [name, source] : host.modules()) bundle.set(name, source);
  if (lua_type(L, index) == LUA_TSTRING) {
    std::string name = lua_tostring(L, index);
    std::string source;
    if (!stdlib_source(name)) {
      RILLE_TRY(source, host.module_source(name));
      bundle.set(name, source);
      gather_modules(host, source, bundle);
    }
    out.payload.set("build", build).set("module", name);
    out.identity = "module " + name + " " + sha256_hex(source);
  } else if (lua_isfunction(L, index)) {
    Shipper shipper(L, what);
    RILLE_TRY(out.payload, shipper.run(index));
    lua_Debug ar;
    lua_pushvalue(L, index);
    lua_getinfo(L, ">S", &ar);
    if (auto chunk = host.chunks().find(ar.source); chunk != host.chunks().end())
      gather_modules(host, std::string(host.source_of(chunk->second)), bundle);
    out.identity = shipper.identity();
  } else {
    return make_error(ErrorKind::invalid,
                      fmt::format("{}: expected a function, or the name of a module that returns one, got {}", what,
                                  describe(L, index)));
  }
  out.payload.set("bundle", std::move(bundle));
  std::size_t bytes = out.payload.to_json().size();
  if (bytes > payload_bytes_max)
    return make_error(
        ErrorKind::invalid,
        fmt::format("{}: the function and what it captures take {} MB; at most 12 MB can be sent", what, bytes >> 20),
        "stage large data as files with box:stage");
  return out;
}

namespace {

// Pushes the value of a cell: decoded data, or the function or table that the cell names.
void push_cell(lua_State* L, const Value& cell, int functions) {
  std::string kind = cell.text("k"), name = cell.text("n");
  if (kind == "v") {
    push_value(L, cell["v"]);
  } else if (kind == "f") {
    lua_rawgeti(L, functions, static_cast<int>(cell.integer("i")) + 1);
  } else if (kind == "rille" || kind == "r") {
    get_registry(L, &key_rille);
    if (kind == "r") {
      lua_getfield(L, -1, name.c_str());
      lua_remove(L, -2);
    }
  } else if (kind == "env") {
    get_registry(L, &key_env);
  } else if (kind == "m") {
    get_registry(L, &key_env);
    lua_getfield(L, -1, "require");
    lua_remove(L, -2);
    push(L, name);
    lua_call(L, 1, 1);
  } else {  // kind "g": the dotted name of a global
    get_registry(L, &key_env);
    for (std::size_t at = 0; at <= name.size();) {
      std::size_t end = std::min(name.find('.', at), name.size());
      lua_getfield(L, -1, name.substr(at, end - at).c_str());
      lua_remove(L, -2);
      at = end + 1;
    }
  }
}

}  // namespace

Result<> unship(lua_State* L, const Value& payload) {
  LuaHost& host = LuaHost::of(L);
  if (payload.text("build") != build)
    return make_error(ErrorKind::config,
                      fmt::format("the call was made by another build of Rille ('{}', but the instance runs '{}')",
                                  payload.text("build"), build),
                      "let the runner install its own bundle on the instance");
  if (const Value::Object* bundle = payload["bundle"].as_object())
    for (const auto& [name, source] : *bundle)
      if (source.as_string()) host.modules().insert_or_assign(name, *source.as_string());
  if (!payload["module"].is_null()) {
    push_cell(L, Value().set("k", "m").set("n", payload.text("module")), 0);
    if (!lua_isfunction(L, -1))
      return make_error(ErrorKind::invalid, fmt::format("the module '{}' returns {}, not a function",
                                                        payload.text("module"), describe(L, -1)));
    return {};
  }
  const Value::Array* functions = payload["functions"].as_array();
  const Value::Array* cells = payload["cells"].as_array();
  Error torn = make_error(ErrorKind::integrity, "the function of the call arrived incomplete on the instance");
  if (!functions || !cells) return torn;
  lua_newtable(L);
  int list = lua_gettop(L);
  for (std::size_t i = 0; i < functions->size(); ++i) {
    const std::string* code = (*functions)[i]["code"].as_string();
    if (!code || luaL_loadbufferx(L, code->data(), code->size(), "call", "b") != 0) return torn;
    get_registry(L, &key_env);
    lua_setfenv(L, -2);
    luaJIT_setmode(L, -1, LUAJIT_MODE_ALLFUNC | (host.options().jit == Jit::always ? LUAJIT_MODE_ON : LUAJIT_MODE_OFF));
    lua_rawseti(L, list, static_cast<int>(i) + 1);
  }
  // for each cell, the first function and upvalue that use the cell
  std::vector<std::pair<int, int>> owner(cells->size());
  for (std::size_t i = 0; i < functions->size(); ++i) {
    const Value::Array* mine = (*functions)[i]["cells"].as_array();
    lua_rawgeti(L, list, static_cast<int>(i) + 1);
    for (std::size_t u = 0; mine && u < mine->size(); ++u) {
      auto c = static_cast<std::size_t>((*mine)[u].as_number() ? *(*mine)[u].as_number() : 0);
      if (c >= cells->size()) return torn;
      if (owner[c].first) {
        lua_rawgeti(L, list, owner[c].first);
        lua_upvaluejoin(L, -2, static_cast<int>(u) + 1, -1, owner[c].second);
        lua_pop(L, 1);
        continue;
      }
      owner[c] = {static_cast<int>(i) + 1, static_cast<int>(u) + 1};
      push_cell(L, (*cells)[c], list);
      lua_setupvalue(L, -2, static_cast<int>(u) + 1);
    }
    lua_pop(L, 1);
  }
  lua_rawgeti(L, list, static_cast<int>(payload.integer("main")) + 1);
  lua_remove(L, list);
  return {};
}

Result<FunctionRef> LuaHost::load_shipped(const Value& payload) {
  Result<> made;
  FunctionRef ref = 0;
  RILLE_CHECK(protect(lua(), [&](lua_State* L) {
    made = unship(L, payload);
    if (made) ref = keep_function(L, -1);
  }));
  if (!made) return std::move(made).error();
  return ref;
}

}  // namespace rille::host
