/* A program with a Lua of its own, Lua 5.4: neither takes the other's calls. */
#include <lauxlib.h>
#include <lualib.h>
#include <rille.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

static void ok(rille_error* error) {
  if (error) fprintf(stderr, "%s\n", rille_error_to_json(error));
  CHECK(!error);
}

/* Integer division and 64-bit integers are Lua 5.4's, and no LuaJIT's. */
static void own_lua(lua_State* L, const char* expected) {
  CHECK(luaL_dostring(L, "local ok, why = pcall(error, {1}) return _VERSION .. ' ' .. 7 // 2 .. ' ' .. (1 << 62)") ==
        0);
  CHECK(strcmp(lua_tostring(L, -1), expected) == 0);
  lua_pop(L, 1);
}

static void twice(rille_call* call, void* L) {
  double x;
  ok(rille_call_number(call, 0, &x));
  own_lua(L, "Lua 5.4 3 4611686018427387904"); /* while Rille's Lua runs */
  rille_call_return_number(call, 2 * x);
}

int main(void) {
  const char* source =
      "local t = {} for w in ('a b c'):gmatch('%a') do t[#t + 1] = w end table.sort(t)\n"
      "local ok, err = pcall(function() error('mine', 0) end)\n"
      "local co = coroutine.wrap(function() coroutine.yield(require('app').twice(21)) end)\n"
      "return _VERSION .. ' ' .. table.concat(t) .. ' ' .. err .. ' ' .. co() .. ' ' .. bit.lshift(1, 4)";
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  own_lua(L, "Lua 5.4 3 4611686018427387904");
  rille_function_spec functions[] = {{sizeof *functions, "twice", RILLE_PURE, twice, L}};
  rille_runtime* rt = NULL;
  rille_run* run = NULL;
  ok(rille_create(NULL, &rt));
  ok(rille_register_module(rt, "app", functions, 1));
  ok(rille_run_from_source(rt, "two.lua", source, strlen(source), NULL, &run));
  ok(rille_run_start(run));
  ok(rille_run_wait(run, -1));
  if (rille_run_error(run)) fprintf(stderr, "%s\n", rille_error_to_json(rille_run_error(run)));
  CHECK(strcmp(rille_run_result(run, NULL), "\"Lua 5.1 abc mine 42 16\"") == 0);
  own_lua(L, "Lua 5.4 3 4611686018427387904");
  ok(rille_destroy(rt));
  lua_close(L);
  printf("two Luas in one program\n");
  return 0;
}
