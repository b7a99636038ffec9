// Ships functions from one Lua state to another, through JSON as over a channel.
#include "bindings/host/ship.hpp"

#include <catch2/catch.hpp>

#include "bindings/host/bytecode.hpp"
#include "bindings/host/open.hpp"
#include "tests/unit/host/fake_run.hpp"

using namespace rille;
using namespace rille::host;
using rille::test::Script;

namespace {

Value shipped;
std::string identity;

Result<int> send(lua_State* L) {
  Result<Shipped> s = ship(L, 1, "call 'test'");
  if (!s) return std::move(s).error();
  auto back = Value::from_json(s->payload.to_json());
  if (!back) return std::move(back).error();
  shipped = std::move(*back);
  identity = s->identity;
  return 0;
}

int open_send(lua_State* L) {
  lua_pushcfunction(L, bind<send>);
  set_global(L, "send");
  return 0;
}

// Ships from one state and runs in another.
std::string travel(const std::string& source, Value argument = {}) {
  Script from, to;
  from.options.open = {open_send};
  Result<Value> sent = from(source);
  if (!sent) return sent.error().summary();
  auto made = LuaHost::create(*to.loop, to.options);
  to.host = std::move(made).value();
  to.host->bind(to.run, to.run);
  auto main = to.host->load_shipped(shipped);
  if (!main) return main.error().summary();
  Result<Value> r = run_blocking(*to.loop, to.run.execute(*to.host, *main, std::move(argument)));
  return r ? r->to_json() : r.error().summary() + "\n" + r.error().traceback;
}

}  // namespace

TEST_CASE("data, helpers and libraries travel with a function") {
  CHECK(travel("local n, t = 5, {1, {x = 'y'}} send(function(a) return {n + a.k, t} end)", Value().set("k", 2)) ==
        R"([7,[1,{"x":"y"}]])");
  CHECK(travel("local function double(x) return 2 * x end local function quad(x) return double(double(x)) "
               "end send(function() return quad(3) end)") == "12");
  CHECK(travel("local function fact(n) return n < 2 and 1 or n * fact(n - 1) end send(function() return "
               "fact(5) end)") == "120");
  CHECK(travel("local floor, insert, m = math.floor, table.insert, math send(function() local t = {} "
               "insert(t, floor(2.5)) return {t[1], m.max(1, 4)} end)") == "[2,4]");
  CHECK(travel("local rille = require 'rille' send(function() return rille.null == nil end)") == "false");
  CHECK(travel("local nothing send(function() return nothing == nil end)") == "true");
  CHECK(travel("local s = '\\0\\255binary' send(function() return #s end)") == "8");
}

TEST_CASE("shared upvalues stay shared") {
  CHECK(travel("local box = {n = 0} local function inc() box.n = box.n + 1 end local function get() return box.n end "
               "send(function() inc() inc() return get() end)") == "2");
}

TEST_CASE("what cannot travel is refused with its name and line") {
  CHECK(travel("local co = coroutine.create(print) send(function() return co end)")
            .find("the function at test.lua:1 uses 'co', which cannot be sent to an instance") != std::string::npos);
  CHECK(travel("local n = 0 send(function() n = n + 1 end)").find("assigns 'n'") != std::string::npos);
  CHECK(travel("local n = 0 local function f() n = 1 end send(function() f() end)").find("assigns 'n'") !=
        std::string::npos);
  CHECK(travel("local n = 0 send(function() return function() n = 1 end end)").find("assigns 'n'") !=
        std::string::npos);
  // It may assign its own locals, also from inner functions.
  CHECK(travel("send(function() local n = 0 local function f() n = n + 1 end f() return n end)") == "1");
  CHECK(travel("local t = {} t.me = t send(function() return t end)").find("refers back") != std::string::npos);
}

TEST_CASE("errors on the other side show the script's lines") {
  std::string text = travel("\n\nsend(function(a)\n  local x = nil\n  return x.y\nend)");
  CHECK(text.find("test.lua:5: attempt to index") != std::string::npos);
  INFO(text);
  CHECK(text.find("  test.lua:5: in the function at line 3") != std::string::npos);
}

TEST_CASE("the identity is the text of what travels, in every process and anywhere in a file") {
  travel("local a, b = 1, 2 send(function() return {a, b, x = {p = 1, q = 2, r = 3, s = 4}} end)");
  std::string first = identity;
  travel("local a, b = 1, 2 send(function() return {a, b, x = {p = 1, q = 2, r = 3, s = 4}} end)");
  CHECK(identity == first);
  travel("local f, g = function() return 1 end, function() return 2 end send(f)");
  std::string f = identity;
  travel("local f, g = function() return 1 end, function() return 2 end send(g)");
  CHECK(f != identity);
  auto identity_of = [](const std::string& source) {
    travel(source);
    return identity;
  };
  const std::string fn = "function()\n  return helper()\nend", help = "local function helper() return 1 end\n";
  const std::string plain = identity_of(help + "send(" + fn + ")");
  CHECK(plain == identity_of("-- a note\nlocal x = 5\n" + help + "local y = x; send(" + fn + ", 7)"));
  CHECK(plain != identity_of("local function helper() return 2 end\nsend(" + fn + ")"));
  CHECK(plain != identity_of(help + "send(function()\n  return -helper()\nend)"));
}

TEST_CASE("another build is refused") {
  Script to;
  (void)to("return 1");
  shipped.set("build", "other");
  auto r = to.host->load_shipped(shipped);
  REQUIRE_FALSE(r);
  CHECK(r.error().kind == ErrorKind::config);
}

TEST_CASE("assigned upvalues are read from this LuaJIT's bytecode") {
  Script script;
  REQUIRE(script("return 1"));
  lua_State* L = script.host->lua();
  // Each kind of constant has its own instruction.
  for (const char* value : {"v", "'text'", "5", "nil", "{}"}) {
    REQUIRE(
        luaL_loadstring(
            L,
            (std::string("local a, v, b = 1, 2, 3 return function() local x = a + b b = ") + value + " end").c_str()) ==
        0);
    lua_call(L, 0, 1);
    std::string code = dump_function(L, -1);
    auto protos = read_prototypes(code);
    REQUIRE(protos);
    for (int i = 1; const char* name = lua_getupvalue(L, -1, i); ++i) {
      CHECK(protos->back().assigned[static_cast<std::size_t>(i - 1)] == (std::string(name) == "b"));
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  REQUIRE(luaL_loadstring(L,
                          "return function() local t = { 'text', 7 } first = t "
                          "return second, function() return third, t, 'fourth' end end") == 0);
  lua_call(L, 0, 1);
  auto protos = read_prototypes(dump_function(L, -1));
  lua_pop(L, 1);
  REQUIRE(protos);
  REQUIRE(protos->size() == 2);
  CHECK((*protos)[0].reads == std::vector<std::string>{"third"});
  CHECK((*protos)[0].writes.empty());
  CHECK((*protos)[1].reads == std::vector<std::string>{"second"});
  CHECK((*protos)[1].writes == std::vector<std::string>{"first"});
  CHECK_FALSE(read_prototypes("\x1bLJ\x03"));
  CHECK_FALSE(read_prototypes("text"));
}
