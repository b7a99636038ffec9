// The patterns of pattern.cpp against LuaJIT's own functions, which the state's raw globals still hold.
#include <catch2/catch.hpp>
#include <chrono>

#include "bindings/host/open.hpp"
#include "tests/unit/host/fake_run.hpp"

using namespace rille;
using namespace rille::host;
using rille::test::Script;

namespace {

// Runs `source` in the raw globals, with the script's `string` and the raw one as arguments; gives what it returns.
std::string beside_raw(const char* source) {
  Script script;
  REQUIRE(script("return 1"));
  std::string told;
  Result<> ran = protect(script.host->lua(), [&](lua_State* L) {
    if (luaL_loadbuffer(L, source, std::char_traits<char>::length(source), "=beside") != 0) lua_error(L);
    push_rille_core(L);
    lua_getfield(L, -1, "store");
    lua_getfield(L, -1, "string");
    lua_insert(L, -3);
    lua_pop(L, 2);
    lua_getglobal(L, "string");
    lua_call(L, 2, 1);
    std::size_t size = 0;
    const char* text = lua_tolstring(L, -1, &size);
    told.assign(text ? text : "(nothing)", text ? size : 9);
  });
  return ran ? told : ran.error().summary();
}

}  // namespace

TEST_CASE("patterns give what LuaJIT's own functions give") {
  CHECK(beside_raw(R"lua(
    local ours, raw = ...
    local random = math.random
    math.randomseed(20261124)
    local atoms = { 'a', 'b', 'c', 'a', 'b', '.', '%a', '%c', '%d', '%g', '%l', '%p', '%s', '%u', '%w', '%x',
      '%z', '%A',
      '%D', '%S', '%W', '%Z', '%%', '%.', '[ab]', '[^a]', '[a-c]', '[%d_]', '[]]', '[^]]', '[a-]', '[%a-z]',
      '[^%s]', '%f[%w]', '%f[^a]', '%bab', '%b()', '%b', '%f', '()', '(', ')', '(', ')', '(a*)', '(.-)',
      '%1', '%2', '%0', '^',
      '$', '*', '+', '-', '?', '*', '+', '-', '?', '%', '[', '[^', ']', '\0', '\xc3\xa9', '1', ' ', '(()', '.-' }
    local bytes = { 'a', 'b', 'c', 'a', 'b', 'ab', 'A', '1', ' ', '_', '(', ')', '\0', '\n', '\xc3\xa9', '%', ']',
      '-', '^' }
    local replacements = { '', 'x', '%0', '<%1>', '%2', '%%', '%', '%a', 7 }
    local function some(list, most)
      local out = {}
      for i = 1, random(0, most) do out[i] = list[random(#list)] end
      return table.concat(out)
    end
    local function show(...)
      local out = {}
      for i = 1, select('#', ...) do out[i] = type(select(i, ...)) .. ':' .. tostring((select(i, ...))) end
      return table.concat(out, ' ')
    end
    local function all(f, ...)
      local out = {}
      for a, b, c in f(...) do
        out[#out + 1] = show(a, b, c)
        if #out == 30 then break end
      end
      return table.concat(out, ';')
    end
    local function by(a, b) if b then return a end if a == 'a' then return false end if a == 'b' then return {} end end
    local calls = {
      function(s, text, pattern, init, plain) return s.find(text, pattern, init, plain) end,
      function(s, text, pattern, init) return s.match(text, pattern, init) end,
      function(s, text, pattern) return all(s.gmatch, text, pattern) end,
      function(s, text, pattern, init, plain, with) return s.gsub(text, pattern, with, init) end,
      function(s, text, pattern) return s.gsub(text, pattern, by) end,
      function(s, text, pattern) return s.gsub(text, pattern, { a = 'A', b = false, ab = 12 }) end,
    }
    for i = 1, 60000 do
      local text, pattern, init = some(bytes, 12), some(atoms, 7), random(3) == 1 and random(-14, 14) or nil
      local plain, with = random(8) == 1 or nil, replacements[random(#replacements)]
      for n, call in ipairs(calls) do
        local expected = show(pcall(call, raw, text, pattern, init, plain, with))
        local got = show(pcall(call, ours, text, pattern, init, plain, with))
        if n == 5 or expected:find('table: ', 1, true) == nil then
          if got ~= expected then
            return ('%d: %q %q %s %s: %s instead of %s'):format(n, text, pattern, tostring(init), tostring(with), got,
              expected)
          end
        end
      end
    end
    for _, args in ipairs { {}, { 'a' }, { nil, 'a' }, { 12, 1 }, { 'a', {} }, { 'a', 'a', 'x' }, { 'a', 'a', {} },
      { 'aaa', 'a', '2' }, { 'a', ('('):rep(33) }, { ('a'):rep(300), ('a?'):rep(300) }, { 'a', ('(a?)'):rep(32) },
      { 'x', 'x', 'x', 'x' } } do
      for _, name in ipairs { 'find', 'match', 'gmatch', 'gsub' } do
        local expected = show(pcall(raw[name], unpack(args, 1, 4)))
        local got = show(pcall(ours[name], unpack(args, 1, 4)))
        if got:gsub('function: .*', '') ~= expected:gsub('function: .*', '') then
          return name .. ': ' .. got .. ' instead of ' .. expected
        end
      end
    end
    return 'same'
  )lua") == "same");
}

TEST_CASE(
    "a pattern error names the script's line, a callback's error passes, and the number of replacements is given") {
  Script script;
  CHECK(script("return (string.find('a', '['))").error().message == "test.lua:1: malformed pattern (missing ']')");
  CHECK(script("return ('a'):gsub('a', function() error('mine') end)").error().message == "test.lua:1: mine");
  CHECK(script("return { ('hello'):gsub('l', 'L') }")->to_json() == R"(["heLLo",2])");
}

TEST_CASE("a long repetition is what its parts make, in any number of pieces") {
  Script script;
  CHECK(*script(R"lua(
    for _, case in ipairs { { 'a', 300000 }, { 'abc', 100001, ', ' }, { 'x', 400000, '' }, { 'abcdefg', '50000.9' },
      { ('ab'):rep(70000), 7, '-' }, { ('ab'):rep(200000), 2, ('-'):rep(300000) }, { ('y'):rep(300000), 1, 'z' } } do
      local text, times, between = unpack(case, 1, 3)
      local parts = {}
      for i = 1, math.floor(tonumber(times)) do parts[i] = text end
      if string.rep(text, times, between) ~= table.concat(parts, between) then return #text .. ' ' .. times end
    end
    return 'same'
  )lua") == "same");
  CHECK(script("local s = ('abc'):rep(2^31 - 1) return s").error().message == "test.lua:1: resulting string too large");
  CHECK(script("return ('a'):rep(300000, {})").error().message.find("bad argument #") != std::string::npos);
}

TEST_CASE("lists of numbers and strings are sorted as LuaJIT does", "[sort]") {
  Script script;
  CHECK(script("local t = {} for i = 1, 5000 do t[i] = (i * 7919) % 5003 end table.sort(t) "
               "for i = 2, #t do if t[i] < t[i - 1] then return i end end return 'sorted'")
            ->to_json() == R"("sorted")");
  CHECK(script("local t = { 'b', '', 'a\\0b', 'a', 'B', 'a\\0a', '\\255' } table.sort(t) "
               "return table.concat(t, ',') == ',B,a,a\\0a,a\\0b,b,\\255'")
            ->to_json() == "true");
  CHECK(script("local t = { 2, 0/0, 1 } table.sort(t) return { t[2], t[3] }")->to_json() == "[1,2]");
  CHECK(script("table.sort { 1, 'a' }").error().message.find("attempt to compare") != std::string::npos);
}

TEST_CASE("xpcall gives what LuaJIT's gives, with a handler that may wait and sees the traceback") {
  Script script;
  auto run = [&](const char* source) {
    Result<Value> r = script(source);
    return r ? r->to_json() : r.error().message;
  };
  CHECK(run("return { xpcall(function(...) return select('#', ...), ... end, print, 1, nil, 3) }") ==
        R"({"$map":[[1,true],[2,3],[3,1],[5,3]]})");
  CHECK(run("return { xpcall(error, function(e) return e .. '!', 2 end, 'x') }") == R"([false,"x!"])");
  CHECK(run("return { xpcall(error, function(e) error('again') end, 'x') }") == R"([false,"error in error handling"])");
  CHECK(run("return { xpcall(error, function(e) return e == nil end) }") == "[false,true]");
  CHECK(run("return select('#', xpcall(error, function() end))") == "2");
  CHECK(run("xpcall(print)").find("bad argument #2 to 'xpcall'") != std::string::npos);
  CHECK(run("local function f() error('deep') end return select(2, xpcall(function() f() end, debug.traceback))") ==
        R"("test.lua:1: deep\n  test.lua:1: in function 'f'\n  test.lua:1: in the function at line 1\n)"
        R"(  test.lua:1: in the main chunk")");
  CHECK(run("local function f() error('deep') end "
            "return select(2, xpcall(function() f() end, function(e) return debug.traceback(e) end))") ==
        R"("test.lua:1: deep\n  test.lua:1: in function 'f'\n  test.lua:1: in the function at line 1\n)"
        R"(  test.lua:1: in the main chunk")");
  CHECK(run("xpcall(error, print, 'x') return (debug.traceback('now'))") ==
        R"("now\n  test.lua:1: in the main chunk")");
  CHECK(
      run("return { xpcall(error, function(e) return select(2, xpcall(error, function(f) return e .. f end, 'b')) end, "
          "'a') }") == R"([false,"ab"])");
}

TEST_CASE("the speed of patterns beside LuaJIT's own, interpreted", "[.bench]") {
  WARN(beside_raw(R"lua(
    jit.off(true, true)
    local ours, raw = ...
    local text = ('The quick brown fox jumps over the lazy dog; key_1 = value-2, '):rep(4)
    local long = text:rep(200)
    local cases = {
      { 'find, plain, short', 'find', text, 'lazy', 1e6 },
      { 'find, plain by option', 'find', text, 'key_1 = v', 1e6, 1, true },
      { 'find, plain, missing', 'find', long, 'nowhere', 2e4 },
      { 'find, class', 'find', text, '%d', 1e6 },
      { 'match, captures', 'match', text, '(%w+) = ([%w-]+)', 1e5 },
      { 'match, anchored', 'match', text, '^(%a+) (%a+)', 1e6 },
      { 'match, lazy', 'match', text, 'brown(.-);', 5e5 },
      { 'gsub, word', 'gsub', long, '%a+', 200, '<%0>' },
      { 'gsub, character', 'gsub', long, '.', 100, '%0' },
      { 'gsub, set', 'gsub', long, '[aeiou]', 500, '' },
    }
    local out = {}
    for _, case in ipairs(cases) do
      local name, f, a, b, times, c, d = unpack(case, 1, 7)
      local best = {}
      for round = 1, 5 do
        for i, lib in ipairs { ours, raw } do
          local g, began = lib[f], os.clock()
          for _ = 1, times do g(a, b, c, d) end
          best[i] = math.min(best[i] or 1e9, os.clock() - began)
        end
      end
      out[#out + 1] = ('%-24s ours %8.1f ns, LuaJIT %8.1f ns, ratio %.2f'):format(name, best[1] / times * 1e9,
        best[2] / times * 1e9, best[1] / best[2])
    end
    return table.concat(out, '\n')
  )lua"));
}
