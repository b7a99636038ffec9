// A script is killed at each of its steps in turn and resumed by another process: finished steps do not run again, and
// the result equals the undisturbed one's, although the script's file has been removed in between.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bindings/host/host.hpp"
#include "bindings/host/open.hpp"
#include "bindings/lua/open.hpp"
#include "runtime/workflow/engine/engine.hpp"

using namespace rille;

namespace {

const char* const script = R"lua(
local rille = require "rille"
local helper = require "helper"
local args = rille.args { n = 3 }

local first = rille.step("first", function() mark("first") return math.random() end)
local drawn = { math.random(1, 1e6), math.random(1, 1e6) }
local items = rille.map("items", { "a", "b", "c", "d" }, { limit = 2 }, function(x, i)
  rille.sleep("nap", "1ms")
  return rille.step("item", function() mark("item " .. x) return x .. helper.twice(i) .. math.random(100) end)
end)
local order = {}
for k in pairs { one = 1, two = 2, three = 3, [1] = 1, [true] = 1 } do order[#order + 1] = tostring(k) end
local winner, key = rille.race {
  slow = function() rille.sleep("long", "1h") end,
  fast = function() return rille.step("fast", function() mark("fast") return "f" end) end,
}
local caught = select(2, pcall(rille.step, "fails", function() mark("fails") error("always") end))
rille.scope(function()
  rille.defer(function() rille.step("cleanup", function() mark("cleanup") end) end)
end)
local last = rille.step("last", function() mark("last") return rille.now() > 0 end)
return { first, drawn, items, order, winner, key, caught.message, last, args.n, math.random() }
)lua";

// mark(name): appends to the log of what really ran; the process ends there when it is the one to crash in.
std::string marks_path;
std::string crash_at;

int mark(lua_State* L) {
  std::string name(host::check_text(L, 1, "mark"));
  if (name == crash_at) _exit(9);
  std::ofstream(marks_path, std::ios::app) << name << "\n";
  return 0;
}

int open_mark(lua_State* L) {
  lua_pushcfunction(L, host::bind<mark>);
  host::set_global(L, "mark");
  return 0;
}

// In a process of its own. Gives the exit code; the result goes to home/result.
int run_in_child(const std::string& home, bool resume, const std::string& crash) {
  pid_t pid = fork();
  if (pid == 0) {
    marks_path = home + "/marks";
    crash_at = crash;
    setenv("XDG_CONFIG_HOME", home.c_str(), 1);
    auto loop = std::move(Loop::create()).value();
    engine::EngineOptions options;
    options.home = home + "/state";
    auto engine = engine::Engine::open(*loop, options);
    engine::RunSpec spec;
    spec.script = home + "/script.lua";
    spec.id = "test-run";
    spec.args.set("n", "5");
    auto run = resume ? run_blocking(*loop, (*engine)->resume("test-run", {}))
                      : run_blocking(*loop, (*engine)->start(spec, {}));
    host::HostOptions host_options;
    host_options.open = lua::openers();
    host_options.open.push_back(open_mark);
    auto made = host::LuaHost::create(*loop, host_options);
    (*made)->bind_run(**run);
    auto main = (*made)->load_file(spec.script);
    Result<Value> result =
        main ? run_blocking(*loop, (*run)->execute(**made, *main, Value())) : Result<Value>(main.error());
    std::ofstream(home + "/result") << (result ? result->to_json()
                                               : result.error().summary() + "\n" + result.error().traceback);
    made->reset();
    run->reset();
    engine->reset();
    _exit(result ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string read(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string fresh_home() {
  std::string home = std::filesystem::temp_directory_path() / "rille-replay-XXXXXX";
  REQUIRE(mkdtemp(home.data()));
  std::ofstream(home + "/script.lua") << script;
  std::ofstream(home + "/helper.lua") << "return { twice = function(x) return 2 * x end }\n";
  return home;
}

}  // namespace

TEST_CASE("a killed script goes on where it was") {
  std::string whole = fresh_home();
  REQUIRE(run_in_child(whole, false, "") == 0);
  std::string expected = read(whole + "/result");
  INFO(expected);
  CHECK(expected.find(R"(["1","one","three","two","true"])") != std::string::npos);
  for (const char* crash : {"first", "item a", "item b", "item c", "item d", "fast", "fails", "cleanup", "last"}) {
    INFO(crash);
    std::string home = fresh_home();
    REQUIRE(run_in_child(home, false, crash) == 9);
    if (std::string(crash) != "first") {  // the source is pinned with the first commit
      std::filesystem::remove(home + "/script.lua");
      std::filesystem::remove(home + "/helper.lua");
    }
    int code = run_in_child(home, true, "");
    INFO(read(home + "/result"));
    REQUIRE(code == 0);
    CHECK(read(home + "/result") == expected);
    std::istringstream marks(read(home + "/marks"));
    std::map<std::string, int> ran;
    for (std::string line; std::getline(marks, line);) ++ran[line];
    // A step that ended before the kill, or began after it, ran once; one that the kill cut off may have run twice.
    for (const auto& [name, times] : ran) CHECK(times <= (name.starts_with("item") ? 2 : 1));
    CHECK(ran.size() == 9);
    std::filesystem::remove_all(home);
  }
  std::filesystem::remove_all(whole);
}
