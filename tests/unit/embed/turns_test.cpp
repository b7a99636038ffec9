// What rille_turn promises: it returns when its budget is spent, whatever the scripts compute, and scripts do not
// notice. A turn without a budget ends a computation after 1,000 instructions, so these tests need no clock.
#include <ctime>

#include "tests/unit/embed/embed.hpp"

namespace rille::test {

namespace {

// What a script sees of the language must not depend on where it gave way.
const char* const all_sorts = R"lua(
local rille = require "rille"
local out = {}
local function note(...)
  local t = { ... }
  for i = 1, select("#", ...) do t[i] = tostring(t[i]) end
  out[#out + 1] = table.concat(t, " ")
end
local function spin(n) local s = 0 for i = 1, n do s = (s * 31 + i) % 1000003 end return s end
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
note(fib(16), spin(5000))
note(pcall(function() spin(3000) error("mine", 0) end))
note(xpcall(function() spin(3000) error("mine", 0) end, function(e) return e .. spin(3000) end))
local gen = coroutine.wrap(function() for i = 1, 5 do spin(2000) coroutine.yield(i, nil) end end)
for i in gen do note("generated", i) end
local outer = coroutine.wrap(function()
  local inner = coroutine.wrap(function() coroutine.yield() spin(4000) coroutine.yield("deep") end)
  note("nothing", (inner()))
  coroutine.yield(inner())
end)
note(outer())
local co = coroutine.create(function(a, b) spin(3000) return a + b end)
note(coroutine.resume(co, 1, 2))
note(coroutine.status(co), coroutine.resume(co))
note((string.gsub("abc", ".", function(c) return c .. spin(3000) end)))
local t = {}
for i = 1, 200 do t[i] = (i * 7919) % 211 end
table.sort(t, function(a, b) spin(20) return a < b end)
note(t[1], t[100], t[200])
local lazy = setmetatable({}, { __index = function(_, k) return k .. spin(2500) end, __call = function(_, ...)
  return select("#", ...), spin(2500) end, __lt = function() spin(2500) return true end })
note(lazy.x, lazy(1, nil, 3), lazy < lazy)
note(rille.step("body", function() return spin(4000) end))
note(rille.step("retried", { retry = 2 }, function() spin(4000) return spin(4000) end))
local shared = {}
local handles = {}
for f = 1, 3 do
  handles[f] = rille.spawn("f" .. f, function()
    for i = 1, 4 do
      shared[#shared + 1] = "f" .. f .. "-" .. i
      spin(3000)
      shared[#shared + 1] = "F" .. f .. "-" .. i
      if i % 2 == 0 then rille.now() end
    end
    return f
  end)
end
spin(4000)
for f = 1, 3 do note(handles[f]:wait()) end
note(table.concat(shared, ","))
note(rille.race { function() spin(9000) return "first" end, function() return "second" end })
note(rille.scope(function() rille.defer(function() spin(3000) note("deferred") end) spin(3000) return 1 end))
return table.concat(out, "\n")
)lua";

// Functions of the language that take long in one call.
const char* const long_calls = R"lua(
local out = {}
local function note(...)
  local t = { ... }
  for i = 1, select("#", ...) do t[i] = tostring(t[i]) end
  out[#out + 1] = table.concat(t, " ")
end
local function digest(list)
  local s = 0
  for i = 1, #list do
    local v = list[i]
    s = (s * 31 + (type(v) == "string" and #v * 7 + v:byte(-1) or type(v) == "number" and v or 5)) % 1000003
  end
  return s
end
local n = 12000
local words, numbers, mixed, dense = {}, {}, { flag = true, [true] = 1, [false] = 2 }, {}
for i = 1, n do
  words["key" .. (i * 7919) % 50021] = i
  numbers[(i * 7919) % 50021 * 2] = i
  mixed[i % 2 == 0 and i * 3 or "key" .. i] = i
  dense[i] = (i * 7919) % 50021
end
for name, t in pairs { words = words, numbers = numbers, mixed = mixed, dense = dense } do
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  note(name, #keys, digest(keys), (next(t)))
end
local texts, up, down = {}, {}, {}
for i = 1, n do texts[i], up[i], down[i] = "w" .. dense[i], dense[i], dense[i] end
table.sort(texts)
table.sort(up)
table.sort(down, function(a, b) return a > b end)
note(digest(texts), digest(up), digest(down))
note(pcall(table.sort, { 1, 2, "x", 3 }))

local long = ("The quick brown fox; "):rep(8000)
note(#long:gsub("%a+", "<%0>"), select(2, long:gsub("o", "0")))
note(#long:gsub("%a+", function(w) if #w > 3 then return w:upper() end end), select(2, long:gsub("q()", { 7 })))
note(long:find("fix"), long:find("f[i]x"), long:match("(%a+) (%a+); $"), long:match("^(.*)%f[x]()x; $") and "yes")
local count = 0
for a, at in long:gmatch("(%a)()%a+;") do count = (count * 31 + at) % 1000003 end
note(count)
local none = 0
for _ in long:gmatch("%d") do none = none + 1 end
note(none, long:find("%b()"), #long:match("%b" .. "Tx" .. ".*"))
local many = ("a"):rep(100)
note(many:find(".-.-.-.-b"), many:match("(a-)(a-)(a*)b"), many:gsub("(.-)(.-)(.-)b", "%1"))
note(coroutine.wrap(function() coroutine.yield(many:find("(.-).-.-.-b")) end)())
local late = ("a"):rep(60000) .. "b"  -- so that an error comes late
note(pcall(late.find, late, ".-b%1"))
note(pcall(function() local x = late:match(".-b(") return x end))
note(pcall(function() local x = late:gsub(".-b[", "") return x end))
note(pcall(function() return long:gsub(".", function() return {} end) end))
note(pcall(function() return long:gsub("; ", function(w) error("mine") end) end))
note(pcall(function() return coroutine.wrap(function() return (late:find(".-b(")) end)() end))
note(xpcall(function() return (late:find(".-b(")) end, function(e) return "handled " .. e end))
-- Tail calls, after which C seems to have called the function.
note(pcall(function() return many:find(".-.-.-b") end))
note(pcall(many.find, many, ".-.-.-b"))
note(pcall(function() return late:find(".-b(") end))
note(pcall(function() return coroutine.wrap(function() return late:find(".-b(") end)() end))
note(coroutine.resume(coroutine.create(late.find), late, ".-b("))
note(xpcall(late.find, function(e) return "handled " .. e end, late, ".-b("))
note(pcall(function() error("no position", 2) end))
note(xpcall(function() error("no position", 2) end, function(e) return e end))
note(coroutine.resume(coroutine.create(function() error("no position", 2) end)))
return table.concat(out, "\n")
)lua";

}  // namespace

TEST_CASE("a turn ends although a script computes, and later turns go on with it", "[embed]") {
  Embedded e;
  rille_run* run = e.start("local n = 0 for i = 1, 1e8 do n = n + i % 3 end return n");
  int unfinished = 0;
  while (rille_run_state(run) == RILLE_RUN_RUNNING) {
    int busy = 0;
    OK(rille_turn(e.rt, 1, &busy));
    unfinished += rille_run_state(run) == RILLE_RUN_RUNNING;
    REQUIRE((busy || rille_run_state(run) != RILLE_RUN_RUNNING));
  }
  REQUIRE(Embedded::result(run) == "100000000");
  REQUIRE(unfinished >= 5);
}

TEST_CASE("a script sees the same whether its turns are long or short", "[embed]") {
  std::string seen[2];
  int turns[2];
  for (int budget_ms : {0, 10000}) {
    Embedded e;
    rille_run* run = e.start(all_sorts);
    turns[budget_ms > 0] = e.turn_to_end(run, budget_ms);
    seen[budget_ms > 0] = Embedded::result(run);
  }
  REQUIRE(seen[0].find("deferred") != std::string::npos);
  REQUIRE(seen[0] == seen[1]);
  REQUIRE(turns[0] > 100);
}

TEST_CASE("one long call of the language gives way, too, and gives the same", "[embed]") {
  std::string seen[2];
  int turns[2];
  for (int budget_ms : {0, 60000}) {
    Embedded e;
    rille_run* run = e.start(long_calls);
    turns[budget_ms > 0] = e.turn_to_end(run, budget_ms);
    seen[budget_ms > 0] = Embedded::result(run);
  }
  INFO(seen[0]);
  REQUIRE(seen[0].find("handled") != std::string::npos);
  REQUIRE(seen[0] == seen[1]);
  REQUIRE(turns[0] > 1000);
}

TEST_CASE("a turn takes little more than its budget, whatever the script calls", "[embed]") {
  const char* const scripts[] = {
      "local t = {} for i = 1, 1e5 do t['key' .. (i * 7919) % 5000011] = i end for k in pairs(t) do end",
      "local t = {} for i = 1, 3e5 do t[i] = (i * 7919) % 5000011 end table.sort(t)",
      "local t = { x = 1 } for i = 1, 3e5 do t[i] = i end for k in pairs(t) do end",
      "local n = #('word '):rep(3e5):gsub('%a+', function(w) return w end)",
      "local n = #('word '):rep(1e6):gsub('%a+', '<%0>')",
      "local at = ('a'):rep(250):find('.-.-.-b')",
      "return ('a'):rep(250):find('.-.-.-b')",
      "return (pcall(string.find, ('a'):rep(250), '.-.-.-b'))",
      "return coroutine.wrap(string.find)(('a'):rep(250), '.-.-.-b')",
      "local at = ('a'):rep(5e6):find('b.')",
  };
  for (const char* script : scripts) {
    Embedded e;
    rille_run* run = e.start(script);
    double longest_ms = 0;  // of this thread's processor time: the machine may be busy
    const auto now_ms = [] {
      timespec t{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
      return double(t.tv_sec) * 1e3 + double(t.tv_nsec) * 1e-6;
    };
    while (rille_run_state(run) == RILLE_RUN_RUNNING) {
      const double began = now_ms();
      OK(rille_turn(e.rt, 10, nullptr));
      longest_ms = std::max(longest_ms, now_ms() - began);
    }
    INFO(script << ": " << longest_ms << " ms, " << Embedded::result(run));
    CHECK(rille_run_state(run) == RILLE_RUN_DONE);
    CHECK(longest_ms < 80);  // Lua's collector has steps of tens of milliseconds for such tables
  }
}

TEST_CASE("runs that compute take turns in the order in which they gave way", "[embed]") {
  Embedded e;
  std::string printed;
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.rules = RILLE_RULES_OPEN;  // does not wait for the disk
  options.print = [](const char* text, size_t length, void* to) {
    static_cast<std::string*>(to)->append(text, length);
  };
  options.payload = &printed;
  const char* source = "local rille = require 'rille' for k = 1, 400 do for i = 1, 1000 do end print('%s') end";
  std::vector<rille_run*> runs;
  for (const char* name : {"a", "b", "c"}) {
    std::string text = source;
    text.replace(text.find("%s"), 2, name);
    runs.push_back(e.start(text, &options));
  }
  for (rille_run* run : runs) e.turn_to_end(run, 0);
  // None ran to its end before the others began.
  std::size_t first[3], last[3];
  for (int i = 0; i < 3; ++i) {
    first[i] = printed.find(static_cast<char>('a' + i));
    last[i] = printed.rfind(static_cast<char>('a' + i));
  }
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) REQUIRE(first[i] < last[k]);
}

TEST_CASE("a run that gave way can be cancelled, interrupted, limited, waited for and abandoned", "[embed]") {
  Embedded e;
  const char* endless = "while true do pcall(function() while true do end end) end";
  auto begun = [&](const rille_run_options* options = nullptr) {
    rille_run* run = e.start(endless, options);
    for (int i = 0; i < 50; ++i) OK(rille_turn(e.rt, 0, nullptr));
    REQUIRE(rille_run_state(run) == RILLE_RUN_RUNNING);
    return run;
  };
  rille_run* run = begun();
  OK(rille_run_cancel(run, "enough"));
  e.turn_to_end(run, 0);
  REQUIRE(rille_run_state(run) == RILLE_RUN_CANCELLED);
  REQUIRE(rille_error_message(rille_run_error(run)) == std::string("enough"));

  run = begun();
  rille_interrupt(e.rt);
  e.turn_to_end(run, 0);
  REQUIRE(rille_run_state(run) == RILLE_RUN_CANCELLED);

  for (bool wall : {false, true}) {
    rille_run_options options;
    rille_run_options_init(&options, sizeof options);
    (wall ? options.wall_ms : options.slice_ms) = 300;
    run = e.start(endless, &options);
    e.turn_to_end(run, 1);
    REQUIRE(rille_run_state(run) == RILLE_RUN_FAILED);
    REQUIRE(rille_error_code(rille_run_error(run)) == std::string(wall ? "wall_ms" : "slice_ms"));
  }

  run = begun();
  REFUSED(rille_run_wait(run, 20), "has not ended");
  rille_run* other = e.start("return 7");
  OK(rille_run_wait(other, -1));  // goes on beside the endless one
  REQUIRE(Embedded::result(other) == "7");
  std::string id = rille_run_id(run);
  rille_destroy(e.rt);
  Embedded again(e.home);
  e.rt = nullptr;
  OK(rille_run_resume(again.rt, id.c_str(), nullptr, &run));
}

TEST_CASE("cleanup that gave way is not cut short", "[embed]") {
  Embedded e;
  rille_run* run = e.start(R"lua(
    local rille = require "rille"
    local done = 0
    rille.step("first", function() end)
    local ok, err = pcall(rille.scope, function()
      rille.defer(function() for i = 1, 30000 do done = done + 1 end end)
      rille.spawn("fails", function() error("failed", 0) end)
      rille.sleep("1h")
    end)
    return done)lua");
  REQUIRE(e.turn_to_end(run, 0) > 10);
  REQUIRE(Embedded::result(run) == "30000");
}

TEST_CASE("a run that gave way is resumed by its record", "[embed]") {
  std::string seen[2];
  for (int cut : {0, 1}) {
    Embedded e;
    const char* source = R"lua(
      local rille = require "rille"
      local log = {}
      local function spin() for i = 1, 5000 do end end
      local function worker(name)
        for i = 1, 6 do
          spin()
          local value = rille.step("s", function() spin() return i end)
          log[#log + 1] = name .. value
          print(name)
        end
      end
      local a = rille.spawn("a", function() worker("a") end)
      local b = rille.spawn("b", function() worker("b") end)
      a:wait() b:wait()
      return table.concat(log, " "))lua";
    std::string printed;
    rille_run_options options;
    rille_run_options_init(&options, sizeof options);
    options.print = [](const char* text, size_t length, void* to) {
      static_cast<std::string*>(to)->append(text, length);
    };
    options.payload = &printed;
    rille_run* run = e.start(source, &options);
    if (cut) {
      while (printed.size() < 8) OK(rille_turn(e.rt, 0, nullptr));  // four steps are in the record
      REQUIRE(rille_run_state(run) == RILLE_RUN_RUNNING);
      std::string id = rille_run_id(run);
      rille_destroy(e.rt);
      Embedded again(e.home);
      e.rt = nullptr;
      OK(rille_run_resume(again.rt, id.c_str(), nullptr, &run));
      OK(rille_run_start(run));
      again.turn_to_end(run, 10);
      seen[cut] = Embedded::result(run);
    } else {
      e.turn_to_end(run, 10);
      seen[cut] = Embedded::result(run);
    }
  }
  // In whatever order the steps of the two were on the disk: each has its own in order.
  for (const std::string& one : seen) {
    INFO(one);
    REQUIRE(one.size() == 12 * 3 + 1);
    for (const char* name : {"a", "b"})
      for (int i = 1; i < 6; ++i) REQUIRE(one.find(name + std::to_string(i)) < one.find(name + std::to_string(i + 1)));
  }
}

}  // namespace rille::test
