// The C++ functions that Rille's Lua code uses, and the opening of a Lua state.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "bindings/host/host.hpp"
#include "bindings/host/keys.hpp"
#include "bindings/host/open.hpp"
#include "bindings/host/pattern.hpp"
#include "bindings/host/prelude.hpp"
#include "bindings/host/stdlib_table.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/units.hpp"

namespace rille::host {

namespace {

int core_raise(lua_State* L) {
  Error e = make_error(error_kind_from(check_text(L, 1, "kind")), std::string(check_text(L, 2, "message")));
  if (lua_type(L, 3) == LUA_TSTRING) e.hint = lua_tostring(L, 3);
  raise(L, std::move(e));
}

int core_describe(lua_State* L) {
  push(L, describe(L, 1));
  return 1;
}

// Whether the thread's stack is nearly full: nested coroutines, and metamethods called by functions of C, use it. False
// where the host program has switched to a stack of its own.
bool is_stack_low() {
  struct Part {
    const char *bottom = nullptr, *low = nullptr;
  };
  thread_local const Part last = [] {
    pthread_attr_t attributes;
    void* bottom = nullptr;
    std::size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return Part();
    pthread_attr_getstack(&attributes, &bottom, &size);
    pthread_attr_destroy(&attributes);
    auto* const from = static_cast<const char*>(bottom);
    return Part{from, from + std::min<std::size_t>(size / 2, 512 << 10)};
  }();
  auto* const here = static_cast<const char*>(__builtin_frame_address(0));
  return here < last.low && here >= last.bottom;
}

// (function) -> the same one, which is never compiled to machine code, so that it can give way anywhere
int core_interpret(lua_State* L) {
  luaJIT_setmode(L, 1, LUAJIT_MODE_FUNC | LUAJIT_MODE_OFF);
  lua_settop(L, 1);
  return 1;
}

int core_check_stack(lua_State* L) {
  check_stack(L);
  return 0;
}

// The error handler of a script's xpcall: LuaJIT calls handlers before it unwinds and without hooks, so a handler of
// the script would run without limits. -> { the error, its traceback }; the script's own is called afterwards.
int core_boxed(lua_State* L) {
  lua_settop(L, 1);
  lua_createtable(L, 2, 0);
  lua_insert(L, 1);
  lua_rawseti(L, 1, 1);
  push(L, traceback(L, 0, false));
  lua_rawseti(L, 1, 2);
  return 1;
}

int core_did_you_mean(lua_State* L) {
  std::vector<std::string> names;
  for (std::size_t i = 1, n = lua_objlen(L, 2); i <= n; ++i) {
    lua_rawgeti(L, 2, static_cast<int>(i));
    if (lua_type(L, -1) == LUA_TSTRING) names.emplace_back(lua_tostring(L, -1));
    lua_pop(L, 1);
  }
  std::string near = did_you_mean(check_text(L, 1, "name"), names);
  push(L, near.empty() ? near : fmt::format("did you mean '{}'?", near));
  return 1;
}

int core_effects_allowed(lua_State* L) {
  lua_pushboolean(L, LuaHost::of(L).effects_allowed());
  return 1;
}

int core_limited(lua_State* L) {
  lua_pushboolean(L, LuaHost::of(L).options().limits.timed());
  return 1;
}

// may(how, name, [mode or what]): raises `denied` without the grant. Returns the path to open for a file.
Result<int> core_may(lua_State* L) {
  const Grants& grants = LuaHost::of(L).grants();
  const std::string_view how = check_text(L, 1, "how");
  const std::string name(check_text(L, 2, "a name"));
  if (how == "env" || how == "process" || how == "kernels") {
    RILLE_CHECK(how == "env" ? grants.env(name) : how == "process" ? grants.process(name) : grants.kernels(name));
    return 0;
  }
  const std::string_view mode = lua_isnoneornil(L, 3) ? "r" : check_text(L, 3, "mode");
  Result<std::string> path = how == "open"    ? grants.open(name, mode)
                             : how == "entry" ? grants.write(name, Grants::Names::entry)
                             : how == "write" ? grants.write(name)
                                              : grants.read(name);
  if (!path) return std::move(path).error();
  push(L, *path);
  return 1;
}

int core_open_rules(lua_State* L) {
  lua_pushboolean(L, LuaHost::of(L).options().rules == Rules::open);
  return 1;
}

int core_object_number(lua_State* L) {
  if (auto n = object_number(L, 1)) lua_pushnumber(L, static_cast<double>(*n));
  else lua_pushnil(L);
  return 1;
}

int core_metatable(lua_State* L) {
  if (!lua_getmetatable(L, 1)) lua_pushnil(L);
  return 1;
}

int core_function_name(lua_State* L) {
  lua_Debug ar;
  lua_pushvalue(L, 1);
  lua_getinfo(L, ">S", &ar);
  push(L, ar.what[0] == 'C' ? std::string("function: builtin")
                            : fmt::format("function: {}:{}", ar.short_src, ar.linedefined));
  return 1;
}

Result<int> core_print(lua_State* L) {
  RILLE_CHECK(LuaHost::of(L).print(check_text(L, 1, "text")));
  return 0;
}

Random& generator(lua_State* L) {
  Fiber* f = LuaHost::of(L).current();
  if (!f) raise(L, make_error(ErrorKind::state, "math.random can be called only while a run is executed"));
  return f->random;
}

int core_random(lua_State* L) {
  Random& random = generator(L);
  if (lua_gettop(L) == 0) {
    lua_pushnumber(L, random.uniform());
    return 1;
  }
  std::int64_t low = 1, high = 0;
  if (lua_gettop(L) == 1) {
    high = check_integer(L, 1, "math.random's upper bound");
  } else {
    low = check_integer(L, 1, "math.random's lower bound");
    high = check_integer(L, 2, "math.random's upper bound");
  }
  if (low > high)
    raise_invalid(
        L,
        fmt::format("math.random: the interval from {} to {} is empty: the lower bound must not be above the upper one",
                    low, high));
  lua_pushnumber(L, static_cast<double>(
                        low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low) + 1))));
  return 1;
}

int core_randomseed(lua_State* L) {
  generator(L).reseed(static_cast<std::uint64_t>(std::llround(check_number(L, 1, "math.randomseed"))));
  return 0;
}

int core_traceback(lua_State* L) {
  std::string head = lua_type(L, 1) == LUA_TSTRING ? std::string(lua_tostring(L, 1)) + "\n" : std::string();
  push(L, head + traceback(L, 0, false));
  return 1;
}

// Pushes the Lua table that belongs to the fiber, and creates the table on first use.
void push_fiber_data(lua_State* L, FiberId id) {
  get_registry(L, &key_data);
  lua_rawgeti(L, -1, static_cast<int>(id));
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, static_cast<int>(id));
  }
  lua_remove(L, -2);
}

// The error handler of scopes and steps: records the traceback while the stack still exists.
int core_trace(lua_State* L) {
  lua_settop(L, 1);
  if (is_error(L, 1)) {
    lua_getfield(L, 1, "traceback");
    if (lua_isnil(L, -1)) {
      push(L, traceback(L, 0, false));
      lua_setfield(L, 1, "traceback");
    }
  } else if (Fiber* f = LuaHost::of(L).current()) {
    push_fiber_data(L, f->id);
    lua_getfield(L, -1, "trace_error");
    bool known = lua_rawequal(L, -1, 1) != 0;  // an inner scope already recorded this error's traceback
    lua_pop(L, 1);
    if (!known) {
      lua_pushvalue(L, 1);
      lua_setfield(L, -2, "trace_error");
      push(L, traceback(L, 0, false));
      lua_setfield(L, -2, "trace");
    }
  }
  lua_settop(L, 1);
  return 1;
}

int core_fiber_data(lua_State* L) {
  Fiber* f = LuaHost::of(L).current();
  if (!f) raise(L, make_error(ErrorKind::state, "this function can be called only while a run is executed"));
  push_fiber_data(L, f->id);
  return 1;
}

int core_step_name(lua_State* L) {
  Fiber* f = LuaHost::of(L).current();
  if (f && !f->step.empty()) push(L, f->step);
  else lua_pushnil(L);
  return 1;
}

int core_env(lua_State* L) {
  get_registry(L, &key_env);
  return 1;
}

int core_setfenv(lua_State* L) {
  lua_settop(L, 2);
  lua_setfenv(L, 1);
  return 0;
}

int core_to_error(lua_State* L) {
  push_error(L, to_error(L, 1));
  return 1;
}

int core_is_error(lua_State* L) {
  lua_pushboolean(L, is_error(L, 1));
  return 1;
}

// --- compiling and loading code

// Longer sources are refused under a time limit: LuaJIT's compiler cannot give way, and takes quadratic time for a
// chain of `elseif` (0.2 s at this size).
constexpr std::size_t timed_source_max = 128 << 10;

int core_compile(lua_State* L) {
  constexpr std::size_t name_max = 1000;  // messages show the first 60 bytes
  const std::string_view source = check_text(L, 1, "source");
  std::string name(check_text(L, 2, "chunk name").substr(0, name_max));
  if (source.size() > timed_source_max && LuaHost::of(L).options().limits.timed()) {
    lua_pushnil(L);
    push(L, fmt::format("the text has {}, but under a limit of time at most {} are compiled at once",
                        format_size_bytes(std::int64_t(source.size())), format_size_bytes(timed_source_max)));
    return 2;
  }
  if (name.starts_with("=[rille")) name = "=(load)";
  Result<> r = LuaHost::of(L).compile(L, source, name, false);
  if (r) return 1;
  lua_pushnil(L);
  push(L, r.error().message);
  return 2;
}

// The source of a file that workflow code loads. The text is stored in the journal, so that a resumed run uses it
// again.
Result<int> core_read_source(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  std::string path(check_text(L, 1, "path"));
  RILLE_TRY(const std::string full, host.code_path(path));
  auto load = [&] { return read_source(full); };
  RILLE_TRY(std::string source, host.has_run() ? host.control().pinned("file:" + path, load) : load());
  push(L, source);
  return 1;
}

// Pushes the loader function of one of Rille's modules or of the script's modules.
Result<int> core_find_module(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  std::string name(check_text(L, 1, "module"));
  if (auto ours = stdlib_source(name)) {
    RILLE_CHECK(host.compile(L, *ours, "=[" + name + "]", true));
    return 1;
  }
  for (char c : name)
    if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-'))
      return make_error(ErrorKind::invalid, fmt::format("'{}' is not a module name", name),
                        "names are letters, digits, '_', '-', with dots between folders");
  RILLE_TRY(std::string source, host.module_source(name));
  std::string path = name;
  for (char& c : path) c = c == '.' ? '/' : c;
  RILLE_CHECK(host.compile(L, source, "@" + path + ".lua", false));
  return 1;
}

int core_has_stdlib(lua_State* L) {
  lua_pushboolean(L, stdlib_source(check_text(L, 1, "module")).has_value());
  return 1;
}

int core_stdlib_names(lua_State* L) {
  lua_newtable(L);
  int i = 0;
  for (std::string_view name : stdlib_names()) {
    if (name.starts_with("rille.")) name.remove_prefix(6);
    if (name.find('.') != name.npos) continue;  // skip a part of a module, such as "nn.gpt"
    push(L, name);
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

}  // namespace

void check_stack(lua_State* L) {
  if (is_stack_low()) luaL_error(L, "stack overflow");
}

void push_core(lua_State* L) {
  lua_newtable(L);
  set_functions(L, {{"raise", bind<core_raise>},
                    {"describe", bind<core_describe>},
                    {"did_you_mean", bind<core_did_you_mean>},
                    {"effects_allowed", core_effects_allowed},
                    {"open_rules", core_open_rules},
                    {"may", bind<core_may>},
                    {"limited", core_limited},
                    {"check_stack", core_check_stack},
                    {"boxed", bind<core_boxed, true>},
                    {"sort", core_sort},
                    {"sort_piece", core_sort_piece},
                    {"interpret", core_interpret},
                    {"object_number", core_object_number},
                    {"metatable", core_metatable},
                    {"function_name", bind<core_function_name>},
                    {"print", bind<core_print>},
                    {"random", bind<core_random>},
                    {"randomseed", bind<core_randomseed>},
                    {"traceback", bind<core_traceback, true>},
                    {"trace", bind<core_trace, true>},
                    {"fiber_data", bind<core_fiber_data>},
                    {"step_name", bind<core_step_name>},
                    {"env", core_env},
                    {"setfenv", core_setfenv},
                    {"to_error", bind<core_to_error>},
                    {"is_error", core_is_error},
                    {"compile", bind<core_compile>},
                    {"read_source", bind<core_read_source>},
                    {"find_module", bind<core_find_module>},
                    {"has_stdlib", bind<core_has_stdlib>},
                    {"stdlib_names", bind<core_stdlib_names>}});
  push_null(L);
  lua_setfield(L, -2, "null");
  get_registry(L, &key_gives_way);
  lua_setfield(L, -2, "gives_way");
  get_registry(L, &key_failed);
  lua_setfield(L, -2, "failed");
  get_registry(L, &key_held);
  lua_setfield(L, -2, "held");
  lua_newtable(L);
  set_pattern_functions(L);
  lua_setfield(L, -2, "patterns");
  set_gsub_functions(L);
  lua_getglobal(L, "require");
  lua_setfield(L, -2, "raw_require");
}

namespace {

void weak_table(lua_State* L, const char* mode) {
  lua_newtable(L);
  lua_newtable(L);
  set_field(L, "__mode", mode);
  lua_setmetatable(L, -2);
}

// io.write(..) and file:write(..), whose first text is at the index in the second upvalue: counts what is written
// against disk_bytes, then calls Lua's own function.
int counted_write(lua_State* L) {
  constexpr std::int64_t number_bytes = 24;
  std::int64_t bytes = 0;
  for (int i = static_cast<int>(lua_tointeger(L, lua_upvalueindex(2))), n = lua_gettop(L); i <= n; ++i)
    bytes += lua_type(L, i) == LUA_TSTRING ? static_cast<std::int64_t>(lua_objlen(L, i)) : number_bytes;
  value_or_raise(L, LuaHost::of(L).options().disk->take(bytes));
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

// Replaces the function `write` of the table on top.
void count_writes(lua_State* L, int first) {
  lua_getfield(L, -1, "write");
  lua_pushinteger(L, first);
  lua_pushcclosure(L, counted_write, 2);
  lua_setfield(L, -2, "write");
}

// A script that got hold of the metatable of files could set its __gc, which runs without hooks.
void protect_files(lua_State* L, bool counted) {
  luaL_getmetatable(L, LUA_FILEHANDLE);
  set_field(L, "__metatable", "file");
  if (counted) {
    lua_getfield(L, -1, "__index");
    count_writes(L, 2);
    lua_getglobal(L, "io");
    count_writes(L, 1);
    lua_pop(L, 2);
  }
  lua_pop(L, 1);
}

// Some of LuaJIT's functions are Lua code with loops: table.move(t, 1, 2^53, 2).
void interpret_tables(lua_State* L) {
  lua_getglobal(L, "table");
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    if (lua_isfunction(L, -1)) luaJIT_setmode(L, -1, LUAJIT_MODE_FUNC | LUAJIT_MODE_OFF);  // fails for C functions
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

void open_state(lua_State* L, const HostOptions& options) {
  if (options.jit != Jit::always) interpret_tables(L);
  install_errors(L);
  protect_files(L, options.disk != nullptr);
  weak_table(L, "k");
  set_registry(L, &key_parents);
  lua_newtable(L);
  lua_pushboolean(L, 0);
  lua_rawseti(L, -2, 1);
  set_registry(L, &key_gives_way);
  lua_newtable(L);
  set_registry(L, &key_failed);
  weak_table(L, "k");
  set_registry(L, &key_held);
  lua_newtable(L);
  set_registry(L, &key_functions);
  lua_newtable(L);
  set_registry(L, &key_data);
  lua_pushcfunction(L, detail::finish_call);
  set_registry(L, &key_finish);

  load_ours(L, prelude_source, "=[rille]");
  push_core(L);
  lua_pushvalue(L, -1);
  set_registry(L, &key_core);
  get_registry(L, &key_parents);
  lua_pushlightuserdata(L, &key_await);
  load_ours(L, order_source, "=[rille.order]");
  load_ours(L, reach_source, "=[rille.reach]");
  get_registry(L, &key_core);
  lua_call(L, 1, 1);
  lua_call(L, 5, 4);
  set_registry(L, &key_run_fiber);
  set_registry(L, &key_shim);
  set_registry(L, &key_rille);
  set_registry(L, &key_env);
  for (lua_CFunction open : options.open) {
    lua_pushcfunction(L, open);
    get_registry(L, &key_core);
    lua_getfield(L, -1, "words");
    lua_remove(L, -2);
    lua_call(L, 1, 0);
  }
}

}  // namespace

Result<> LuaHost::open_libraries() {
  lua_gc(state_->lua(), LUA_GCSTOP, 0);  // all that is made here stays
  Result<> opened = protect(state_->lua(), [this](lua_State* L) { open_state(L, options_); });
  lua_gc(state_->lua(), LUA_GCRESTART, -1);
  return opened;
}

Result<std::string> LuaHost::module_source(const std::string& name) {
  auto known = modules_.find(name);
  if (known != modules_.end()) return known->second;
  auto load = [&]() -> Result<std::string> {
    std::string path = name, tried;
    for (char& c : path) c = c == '.' ? '/' : c;
    if (!options_.script_directory.empty()) {
      for (const char* end : {".lua", "/init.lua"}) {
        std::string full = options_.script_directory + "/" + path + end;
        std::error_code ec;
        if (std::filesystem::is_regular_file(full, ec)) return read_source(full);
        tried += (tried.empty() ? "" : " and ") + full;
      }
    }
    std::vector<std::string> names;
    for (std::string_view n : stdlib_names()) names.emplace_back(n);
    std::string near = did_you_mean(name, names);
    return make_error(ErrorKind::invalid, fmt::format("there is no module '{}'", name),
                      !near.empty()   ? fmt::format("did you mean '{}'?", near)
                      : tried.empty() ? "modules lie beside the script"
                                      : "looked for " + tried);
  };
  RILLE_TRY(std::string source, control_ ? control_->pinned(name, load) : load());
  modules_.emplace(name, source);
  return source;
}

void add_words(lua_State* L, int rille) {
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, rille);
  }
  lua_pop(L, 1);
}

void push_rille_core(lua_State* L) { get_registry(L, &key_core); }
void set_fiber_body(lua_State* L) { set_registry(L, &key_run_fiber); }
void set_global(lua_State* L, const char* name) {
  get_registry(L, &key_core);
  lua_getfield(L, -1, "store");
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, name);
  lua_pop(L, 3);
}

}  // namespace rille::host
