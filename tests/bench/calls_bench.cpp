// Calls between a host program and scripts beside the plain C API of LuaJIT, in one run: interleaved short rounds, the
// fastest of each, since other load of the machine only adds. Both interpret: Rille does not compile a user's Lua
// unless asked to.
//   ninja -C build/release bench_calls && build/release/tests/bench/bench_calls [PART OF A FIGURE'S NAME]
// If the compiler finds sol2 (docs/measurements), its calls are measured beside plain LuaJIT, too.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "bindings/c/rille.h"

extern "C" {
#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <lualib.h>
}

#if __has_include(<sol/sol.hpp>)
#define SOL_ALL_SAFETIES_ON 1
#include <sol/sol.hpp>
#endif

namespace {

constexpr int rounds = 200;
const char* wanted = "";  // part of the names of the figures to measure

void check(rille_error* error) {
  if (!error) return;
  std::fprintf(stderr, "%s\n", rille_error_to_json(error));
  std::exit(1);
}

double now_us() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

double fastest(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }

// Prints both, and the difference beside the goal. `goal_us` 0: none.
template <class A, class B>
void compare(const char* what, int times, double goal_us, A rille, B plain) {
  if (!std::strstr(what, wanted)) return;
  std::vector<double> a, b;
  for (int round = 0; round < rounds; ++round) {
    double t = now_us();
    rille(times);
    a.push_back((now_us() - t) / times);
    t = now_us();
    plain(times);
    b.push_back((now_us() - t) / times);
  }
  const double ours = fastest(a), theirs = fastest(b);
  std::printf("%-52s %12.3f %12.3f %12.3f", what, ours, theirs, ours - theirs);
  if (goal_us > 0) std::printf("   <= %g%s", goal_us, ours - theirs <= goal_us ? "" : "  MISSED");
  std::printf("\n");
}

rille_value number(double n) {
  rille_value v{};
  v.kind = RILLE_VALUE_NUMBER;
  v.as.number = n;
  return v;
}

// --- the host functions of both

void add(rille_call* call, void*) {
  double a = 0, b = 0;
  rille_error* error = rille_call_number(call, 0, &a);
  if (!error) error = rille_call_number(call, 1, &b);
  if (error) rille_call_fail(call, error);
  else rille_call_return_number(call, a + b);
}

int plain_add(lua_State* L) {
  lua_pushnumber(L, luaL_checknumber(L, 1) + luaL_checknumber(L, 2));
  return 1;
}

void sum(rille_call* call, void*) {
  rille_value t;
  check(rille_call_value(call, 0, &t));
  double all = 0;
  for (std::size_t i = 0; i < t.as.table->field_count; ++i) all += t.as.table->fields[i].value.as.number;
  rille_call_return_number(call, all);
}

int plain_sum(lua_State* L) {
  double all = 0;
  for (const char* name : {"x", "y", "z"}) {
    lua_getfield(L, 1, name);
    all += lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  lua_pushnumber(L, all);
  return 1;
}

void point(rille_call* call, void*) {
  const rille_field fields[] = {{"x", 1, number(1)}, {"y", 1, number(2)}, {"z", 1, number(3)}};
  const rille_table table{nullptr, 0, fields, 3};
  rille_value v{};
  v.kind = RILLE_VALUE_TABLE;
  v.as.table = &table;
  rille_call_return_value(call, &v);
}

int plain_point(lua_State* L) {
  lua_createtable(L, 0, 3);
  double n = 0;
  for (const char* name : {"x", "y", "z"}) {
    lua_pushnumber(L, ++n);
    lua_setfield(L, -2, name);
  }
  return 1;
}

std::size_t seen_bytes = 0;
void look(rille_call* call, void*) {
  rille_value v;
  check(rille_call_value(call, 0, &v));
  seen_bytes += v.as.bytes.size + static_cast<unsigned char>(v.as.bytes.data[v.as.bytes.size - 1]);
}

int plain_look(lua_State* L) {
  std::size_t size = 0;
  const char* data = lua_tolstring(L, 1, &size);
  seen_bytes += size + static_cast<unsigned char>(data[size - 1]);
  return 0;
}

// --- the script of both: `app` is the table of host functions

const char* const source = R"lua(
local app = ...
if not app then app = require "app" end
local add, sum, point, look = app.add, app.sum, app.point, app.look
local text
return {
  add = function(a, b) return a + b end,
  sum = function(t) return t.x + t.y + t.z end,
  point = function() return { x = 1, y = 2, z = 3 } end,
  adds = function(n) for i = 1, n do add(i, 1) end end,
  sums = function(n) for i = 1, n do sum({ x = i, y = 2, z = 3 }) end end,
  points = function(n) for i = 1, n do point() end end,
  nothings = function(n) for i = 1, n do local t = { x = i, y = 2, z = 3 } end end,
  size = function(b) return #b end,
  look = function()
    text = text or ("x"):rep(10 * 1000 * 1000)
    look(text)
  end,
}
)lua";

struct Plain {
  lua_State* L = luaL_newstate();
  Plain() {
    luaL_openlibs(L);
    luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    luaL_loadbuffer(L, source, std::strlen(source), "=plain");
    lua_newtable(L);
    const std::pair<const char*, lua_CFunction> functions[] = {
        {"add", plain_add}, {"sum", plain_sum}, {"point", plain_point}, {"look", plain_look}};
    for (const auto& [name, f] : functions) {
      lua_pushcfunction(L, f);
      lua_setfield(L, -2, name);
    }
    lua_call(L, 1, 1);
  }
  ~Plain() { lua_close(L); }
  int find(const char* name) {
    lua_getfield(L, 1, name);
    return luaL_ref(L, LUA_REGISTRYINDEX);
  }
  void call(int ref, double n) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
    lua_pushnumber(L, n);
    if (lua_pcall(L, 1, 0, 0) != 0) std::abort();
  }
};

struct Ours {
  rille_runtime* rt = nullptr;
  rille_script* script = nullptr;
  explicit Ours(const std::string& home) {
    rille_options options;
    rille_options_init(&options, sizeof options);
    options.home = home.c_str();
    check(rille_create(&options, &rt));
    const rille_function_spec functions[] = {{sizeof(rille_function_spec), "add", RILLE_PURE, add, nullptr},
                                             {sizeof(rille_function_spec), "sum", RILLE_PURE, sum, nullptr},
                                             {sizeof(rille_function_spec), "point", RILLE_PURE, point, nullptr},
                                             {sizeof(rille_function_spec), "look", RILLE_PURE, look, nullptr}};
    check(rille_register_module(rt, "app", functions, 4));
    check(rille_script_load(rt, "bench.lua", source, std::strlen(source), nullptr, &script));
  }
  ~Ours() {
    rille_script_free(script);
    rille_destroy(rt);
  }
  rille_script_function find(const char* name) {
    rille_script_function f = 0;
    check(rille_script_find(script, name, &f));
    return f;
  }
  void call(rille_script_function f, double n) {
    const rille_value argument = number(n);
    check(rille_script_call(rt, f, &argument, 1, nullptr, 0));
  }
};

void into_scripts(Ours& ours, Plain& plain) {
  const auto f = ours.find("add"), s = ours.find("sum"), p = ours.find("point");
  const int g = plain.find("add"), t = plain.find("sum"), q = plain.find("point");
  double all = 0;
  compare(
      "host -> script, two numbers, one back", 4'000, 0.15,
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          const rille_value arguments[] = {number(i), number(1)};
          rille_value result;
          check(rille_script_call(ours.rt, f, arguments, 2, &result, 1));
          all += result.as.number;
        }
      },
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          lua_rawgeti(plain.L, LUA_REGISTRYINDEX, g);
          lua_pushnumber(plain.L, i);
          lua_pushnumber(plain.L, 1);
          if (lua_pcall(plain.L, 2, 1, 0) != 0) std::abort();
          all += lua_tonumber(plain.L, -1);
          lua_pop(plain.L, 1);
        }
      });
  compare(
      "host -> script, a table of three fields in", 4'000, 0.3,
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          const rille_field fields[] = {{"x", 1, number(i)}, {"y", 1, number(2)}, {"z", 1, number(3)}};
          const rille_table table{nullptr, 0, fields, 3};
          rille_value v{}, result;
          v.kind = RILLE_VALUE_TABLE;
          v.as.table = &table;
          check(rille_script_call(ours.rt, s, &v, 1, &result, 1));
        }
      },
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          lua_rawgeti(plain.L, LUA_REGISTRYINDEX, t);
          plain_point(plain.L);
          if (lua_pcall(plain.L, 1, 1, 0) != 0) std::abort();
          lua_pop(plain.L, 1);
        }
      });
  compare(
      "host -> script, a table of three fields back", 4'000, 0.3,
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          rille_value result;
          check(rille_script_call(ours.rt, p, nullptr, 0, &result, 1));
          all += result.as.table->fields[0].value.as.number;
        }
      },
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          lua_rawgeti(plain.L, LUA_REGISTRYINDEX, q);
          if (lua_pcall(plain.L, 0, 1, 0) != 0) std::abort();
          for (const char* name : {"x", "y", "z"}) {
            lua_getfield(plain.L, -1, name);
            all += lua_tonumber(plain.L, -1);
            lua_pop(plain.L, 1);
          }
          lua_pop(plain.L, 1);
        }
      });
  if (all < 0) std::abort();
}

void out_of_scripts(Ours& ours, Plain& plain) {
  for (const auto& [what, name, goal] : {std::tuple{"script -> host PURE, two numbers, one back", "adds", 0.15},
                                         {"script -> host PURE, a table of three fields in", "sums", 0.3},
                                         {"script -> host PURE, a table of three fields back", "points", 0.3}}) {
    const auto f = ours.find(name);
    const int g = plain.find(name);
    compare(
        what, 4'000, goal, [&, f = f](int n) { ours.call(f, n); }, [&, g = g](int n) { plain.call(g, n); });
  }
}

void large_bytes(Ours& ours, Plain& plain) {
  static std::string bytes(10'000'000, 'y');
  const auto size = ours.find("size"), look_at = ours.find("look");
  const int plain_size = plain.find("size"), plain_look_at = plain.find("look");
  compare(
      "host -> script, 10 MB (plain: a string, a copy)", 2, 0,
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          rille_value v{}, result;
          v.kind = RILLE_VALUE_HANDLE;
          check(rille_buffer_wrap(ours.rt, bytes.data(), bytes.size(), nullptr, nullptr, &v.as.handle));
          check(rille_script_call(ours.rt, size, &v, 1, &result, 1));
          rille_handle_drop(ours.rt, v.as.handle);
        }
      },
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          bytes[0] = static_cast<char>('a' + i);
          lua_rawgeti(plain.L, LUA_REGISTRYINDEX, plain_size);
          lua_pushlstring(plain.L, bytes.data(), bytes.size());
          if (lua_pcall(plain.L, 1, 0, 0) != 0) std::abort();
        }
      });
  compare(
      "script -> host, a string of 10 MB", 200, 0,
      [&](int n) {
        for (int i = 0; i < n; ++i) check(rille_script_call(ours.rt, look_at, nullptr, 0, nullptr, 0));
      },
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          lua_rawgeti(plain.L, LUA_REGISTRYINDEX, plain_look_at);
          if (lua_pcall(plain.L, 0, 0, 0) != 0) std::abort();
        }
      });
}

void whole_runs(Ours& ours, const std::string& home) {
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.rules = RILLE_RULES_OPEN;
  const char* const text = "return 1";
  auto plain = [&](int n) {
    for (int i = 0; i < n; ++i) {
      lua_State* L = luaL_newstate();
      luaL_openlibs(L);
      luaL_loadbuffer(L, text, std::strlen(text), "=x");
      if (lua_pcall(L, 0, 1, 0) != 0) std::abort();
      lua_close(L);
    }
  };
  compare(
      "open run, from its text to its end", 3, 500,
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          rille_run* run = nullptr;
          check(rille_run_from_source(ours.rt, "x.lua", text, std::strlen(text), &options, &run));
          check(rille_run_start(run));
          check(rille_run_wait(run, -1));
          rille_run_free(run);
        }
      },
      plain);
  compare(
      "script loaded and freed", 3, 500,
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          rille_script* script = nullptr;
          check(rille_script_load(ours.rt, "x.lua", text, std::strlen(text), &options, &script));
          rille_script_free(script);
        }
      },
      plain);
  rille_options o;
  rille_options_init(&o, sizeof o);
  o.home = home.c_str();
  compare(
      "runtime created and destroyed", 2, 3000,
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          rille_runtime* rt = nullptr;
          check(rille_create(&o, &rt));
          rille_destroy(rt);
        }
      },
      [](int) {});
}

#if __has_include(<sol/sol.hpp>)
void beside_sol(Plain& plain) {
  sol::state lua;
  lua.open_libraries();
  luaJIT_setmode(lua, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  sol::table app = lua.create_table();
  app["add"] = [](double a, double b) { return a + b; };
  app["sum"] = [](const sol::table& t) { return t.get<double>("x") + t.get<double>("y") + t.get<double>("z"); };
  app["point"] = [](sol::this_state L) { return sol::state_view(L).create_table_with("x", 1, "y", 2, "z", 3); };
  const sol::table script = lua.load(source)(app).get<sol::table>();
  std::printf("\n%-52s %12s %12s %12s\n", "", "sol2", "plain", "difference");
  double all = 0;
  auto call_plain = [&](const char* name, auto push, auto pop) {
    return [&, f = plain.find(name), push, pop](int n) {
      for (int i = 0; i < n; ++i) {
        lua_rawgeti(plain.L, LUA_REGISTRYINDEX, f);
        if (lua_pcall(plain.L, push(i), 1, 0) != 0) std::abort();
        pop();
        lua_pop(plain.L, 1);
      }
    };
  };
  auto top = [&] { all += lua_tonumber(plain.L, -1); };
  const sol::protected_function f = script["add"], s = script["sum"], p = script["point"];
  compare(
      "host -> script, two numbers, one back", 4'000, 0,
      [&](int n) {
        for (int i = 0; i < n; ++i) all += f(double(i), 1.0).get<double>();
      },
      call_plain(
          "add", [&](int i) { return lua_pushnumber(plain.L, i), lua_pushnumber(plain.L, 1), 2; }, top));
  compare(
      "host -> script, a table of three fields in", 4'000, 0,
      [&](int n) {
        for (int i = 0; i < n; ++i) all += s(lua.create_table_with("x", double(i), "y", 2.0, "z", 3.0)).get<double>();
      },
      call_plain(
          "sum", [&](int) { return plain_point(plain.L); }, top));
  compare(
      "host -> script, a table of three fields back", 4'000, 0,
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          const sol::table t = p();
          all += t.get<double>("x") + t.get<double>("y") + t.get<double>("z");
        }
      },
      call_plain(
          "point", [](int) { return 0; },
          [&] {
            for (const char* name : {"x", "y", "z"}) {
              lua_getfield(plain.L, -1, name);
              all += lua_tonumber(plain.L, -1);
              lua_pop(plain.L, 1);
            }
          }));
  for (const auto& [what, name] : {std::pair{"script -> host, two numbers, one back", "adds"},
                                   {"script -> host, a table of three fields in", "sums"},
                                   {"script -> host, a table of three fields back", "points"}}) {
    const sol::protected_function loop = script[name];
    const int g = plain.find(name);
    compare(
        what, 4'000, 0, [&](int n) { (void)loop(double(n)); }, [&, g](int n) { plain.call(g, n); });
  }
  if (all < 0) std::abort();
}
#else
void beside_sol(Plain&) {}
#endif

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) wanted = argv[1];
  char folder[] = "/tmp/rille-bench-XXXXXX";
  if (!mkdtemp(folder)) return 1;
  const std::string home = folder;
  {
    Ours ours(home + "/a");
    Plain plain;
    std::printf("%-52s %12s %12s %12s   goal (difference), us\n", "", "rille", "plain", "difference");
    into_scripts(ours, plain);
    out_of_scripts(ours, plain);
    large_bytes(ours, plain);
    whole_runs(ours, home + "/b");
    beside_sol(plain);
  }
  std::filesystem::remove_all(home);
  return 0;
}
