// Interrupts of endless code that uses the flow verbs: the script unwinds, its cleanup runs and may wait.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "bindings/host/host.hpp"
#include "bindings/lua/open.hpp"
#include "runtime/workflow/engine/run.hpp"

using namespace rille;

namespace {

struct Ended {
  Result<Value> result = Value();
  std::string printed;
};

// Runs the source; once it has printed "ready", another thread arms the interrupt.
Ended interrupt(const std::string& source) {
  Ended out;
  auto loop = std::move(Loop::create()).value();
  std::atomic<host::LuaHost*> target{nullptr};
  std::atomic<bool> ready{false}, over{false};
  engine::RunHooks hooks;
  hooks.print = [&](std::string_view text) {
    out.printed += text;
    if (out.printed.find("ready\n") != std::string::npos) ready = true;
  };
  auto run = engine::make_ephemeral_run(*loop, "test", "/tmp", Value(), hooks);
  host::HostOptions options;
  options.open = lua::openers();
  options.on_interrupt = [&] { run->cancel(make_error(ErrorKind::cancelled, "interrupted by Ctrl-C")); };
  auto host = std::move(host::LuaHost::create(*loop, options)).value();
  host->bind_run(*run);
  target = host.get();
  std::thread thread([&] {
    while (!ready && !over) std::this_thread::yield();
    if (!over) target.load()->arm_interrupt();
  });
  auto main = host->load("test.lua", "local rille = require 'rille'\n" + source);
  REQUIRE(main);
  out.result = run_blocking(*loop, run->execute(*host, *main, Value()));
  over = true;
  thread.join();
  host.reset();
  return out;
}

void check_interrupted(const Ended& ended) {
  REQUIRE_FALSE(ended.result);
  CHECK(ended.result.error().kind == ErrorKind::cancelled);
  CHECK(ended.result.error().message == "interrupted by Ctrl-C");
}

}  // namespace

TEST_CASE("an endless loop is interrupted and its defers run, waiting included") {
  Ended e = interrupt(R"(
    rille.defer(function() rille.sleep("1ms") local s = 0 for i = 1, 1e5 do s = s + i end print("cleaned " .. s) end)
    rille.scope(function()
      rille.defer(function() print("inner") end)
      print("ready")
      while true do pcall(function() while true do end end) end
    end))");
  check_interrupted(e);
  CHECK(e.printed == "ready\ninner\ncleaned 5000050000\n");
  CHECK(e.result.error().traceback.find("test.lua:") != std::string::npos);
}

TEST_CASE("a loop that swallows the cancellation at every wait is ended") {
  Ended e = interrupt(R"(
    print("ready")
    while true do pcall(rille.sleep, 0.001) end)");
  check_interrupted(e);
}

TEST_CASE("an endless step body is interrupted") {
  Ended e = interrupt(R"(
    rille.step("s", function() print("ready") while true do end end))");
  check_interrupted(e);
}

TEST_CASE("children are cancelled with the run, and clean up") {
  Ended e = interrupt(R"(
    rille.spawn("child", function()
      rille.defer(function() rille.sleep("1ms") print("child cleaned") end)
      rille.sleep("1h")
    end)
    rille.sleep("1ms")
    print("ready")
    while true do end)");
  check_interrupted(e);
  CHECK(e.printed == "ready\nchild cleaned\n");
}

TEST_CASE("an endless loop in a child is interrupted") {
  Ended e = interrupt(R"(
    rille.spawn("child", function() print("ready") while true do end end):wait())");
  check_interrupted(e);
}
