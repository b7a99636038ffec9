// What rille_turn promises: it returns when its budget is spent, whatever the scripts compute, and scripts do not
// notice. A turn without a budget ends a computation after 1,000 instructions, so these tests need no clock.
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
