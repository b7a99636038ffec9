// Runs one Lua test file: lua_runner FILE. The first line says in which kind of run: `-- run: durable` (an engine
// with a fresh home, local provider included) or `-- run: ephemeral`. Output is TAP; the exit code is 1 when a test
// failed.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bindings/host/host.hpp"
#include "bindings/host/open.hpp"
#include "bindings/lua/open.hpp"
#include "runtime/workflow/engine/engine.hpp"

using namespace rille;

namespace {

struct Outcome {
  int planned = -1, passed = 0, failed = 0;
  void see(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = text.substr(at, end - at);
      if (line.starts_with("ok ")) ++passed;
      if (line.starts_with("not ok ")) ++failed;
      if (line.starts_with("1..")) planned = std::atoi(std::string(line.substr(3)).c_str());
      at = end + 1;
    }
  }
};

int report(const Result<Value>& result, const Outcome& seen) {
  if (!result) {
    std::printf("Bail out! %s\n%s\n", result.error().summary().c_str(), result.error().traceback.c_str());
    return 1;
  }
  if (seen.planned != seen.passed + seen.failed || seen.passed == 0) {
    std::printf("# planned %d, seen %d\n", seen.planned, seen.passed + seen.failed);
    return 1;
  }
  return seen.failed ? 1 : 0;
}

// set_grants(JSON): for tests of what needs which grant
Result<int> set_grants(lua_State* L) {
  RILLE_TRY(Value value, Value::from_json(host::check_text(L, 1, "grants")));
  RILLE_TRY(host::Grants grants, host::Grants::parse(value));
  host::LuaHost::of(L).grant(std::move(grants));
  return 0;
}

int open_grants(lua_State* L) {
  lua_pushcfunction(L, host::bind<set_grants>);
  host::set_global(L, "set_grants");
  return 0;
}

Result<Value> run_file(const std::string& file, bool durable, const std::string& home, Outcome& seen) {
  RILLE_TRY(std::unique_ptr<Loop> loop, Loop::create());
  engine::RunHooks hooks;
  hooks.print = [&seen](std::string_view text) {
    seen.see(text);
    std::fwrite(text.data(), 1, text.size(), stdout);
  };
  Value args;
  args.set("count", "12").set("name", "x").set("on", "yes").set("list", "1,2,3");
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<engine::Run> run;
  if (durable) {
    engine::EngineOptions options;
    options.home = home;
    RILLE_TRY(engine, engine::Engine::open(*loop, options));
    engine::RunSpec spec;
    spec.script = file;
    spec.args = args;
    auto started = run_blocking(*loop, engine->start(spec, hooks));
    if (!started) return started.error();
    run = std::move(*started);
  } else {
    run = engine::make_ephemeral_run(*loop, "test", home, args, hooks);
  }
  host::HostOptions options;
  options.rules = durable ? host::Rules::workflow : host::Rules::open;
  options.open = lua::openers();
  options.open.push_back(open_grants);
  options.full_tracebacks = std::getenv("RILLE_TRACE") != nullptr;
  RILLE_TRY(std::unique_ptr<host::LuaHost> host, host::LuaHost::create(*loop, options));
  host->bind_run(*run);
  RILLE_TRY(FunctionRef main, host->load_file(file));
  Result<Value> result = run_blocking(*loop, run->execute(*host, main, Value()));
  host.reset();
  run.reset();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::string first;
  std::ifstream in(argv[1]);
  std::getline(in, first);
  bool durable = first.find("run: durable") != std::string::npos;
  std::string home = std::filesystem::temp_directory_path() / "rille-lua-test-XXXXXX";
  if (!mkdtemp(home.data())) return 2;
  setenv("XDG_CONFIG_HOME", home.c_str(), 1);
  setenv("RILLE_TEST_FOLDER", std::filesystem::absolute(argv[1]).parent_path().c_str(), 1);  // for steps that read
  Outcome seen;
  Result<Value> result = run_file(argv[1], durable, home, seen);
  std::filesystem::remove_all(home);
  return report(result, seen);
}
