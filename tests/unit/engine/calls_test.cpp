// Calls against real agents of the local provider: what is restarted, what is cancelled, and what is forgotten, over
// processes of the runner that end at any point.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/unit/engine/runner.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;
using Live = Runner::Live;

namespace {

Async<Value> call(Run& run, FiberId f, std::string name, std::string payload) {
  RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "box", Value(Value::Object{}), "test"));
  CallSpec s = spec(name, payload);
  co_return co_await run.call(f, box.id, std::move(s), "test:call");
}

auto one_call(std::string payload) {
  return [payload](Live& l) -> CppGuest::Body {
    return [&l, payload](FiberId f) { return call(*l.run, f, "work", payload); };
  };
}

}  // namespace

TEST_CASE("a call whose worker dies without a new checkpoint is given up, even if it reports progress") {
  Runner r;
  r.restarts.attempts_max = 3;
  r.restarts.initial_ms = 1;
  Result<Value> out = r.run(one_call(R"({"do":"progress and die","step":1,"value":7})"));
  REQUIRE_FALSE(out.ok());
  const Error& e = out.error();
  CHECK(e.kind == ErrorKind::internal);
  CHECK(e.code == "restarts_max");
  CHECK_FALSE(e.retryable);
  CHECK(e.message.find("'work' ended 3 times") != std::string::npos);
  CHECK(e.message.find("signal 9") != std::string::npos);
  CHECK(e.hint.find("attempt 4") != std::string::npos);  // the first one brought the checkpoint of step 1
  CHECK(r.count("call_restarted") == 3);
}

TEST_CASE("a call that gets on between its worker's deaths is not given up") {
  Runner r;
  r.restarts.attempts_max = 2;
  r.restarts.initial_ms = 1;
  Result<Value> out = r.run(one_call(R"({"do":"progress and die","step":10,"grows":true,"attempts":6,"value":7})"));
  REQUIRE(out.ok());
  CHECK(*out == Value(7));
  CHECK(r.count("call_restarted") == 5);
  CHECK(r.printed == "attempt 1\nattempt 2\nattempt 3\nattempt 4\nattempt 5\nattempt 6\n");
}

TEST_CASE("the wait before a restart ends with its scope, and its instant outlives the runner") {
  Runner r;
  r.restarts.initial_ms = r.restarts.cap_ms = 3'600'000;
  auto live = r.begin(one_call(R"({"do":"progress and die"})"));
  auto waits = [&] { return r.count("call_restarted") > 0; };
  until(*live, waits);
  REQUIRE(live->journal->flush().ok());
  double planned = 0;
  (void)live->journal->reader().query("SELECT next_us FROM begun WHERE name='work'", {},
                                      [&](const store::Row& row) { planned = static_cast<double>(row.integer(0)); });
  CHECK(planned > 0);
  live.reset();
  live = r.begin(one_call(R"({"do":"progress and die"})"));
  until(*live, [&] { return r.count("call_restarted") > 1; });
  REQUIRE(live->journal->flush().ok());
  (void)live->journal->reader().query("SELECT next_us FROM begun WHERE name='work'", {}, [&](const store::Row& row) {
    CHECK(static_cast<double>(row.integer(0)) == planned);
  });
  live->run->cancel(make_error(ErrorKind::cancelled, "enough"));
  live->loop->run_until([&] { return live->out.has_value(); });
  CHECK(live->out->error().kind == ErrorKind::cancelled);
}

TEST_CASE("a result that was recorded is forgotten with the first contact after a resume") {
  Runner r;
  // The runner is killed right after the first result is in the journal, before the agent hears of it.
  auto script = [&r](Live& l) -> CppGuest::Body {
    return [&l, &r](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await l.run->rent(f, "box", Value(Value::Object{}), "test"));
      for (int i = 0; i < 3; ++i) {
        CallSpec s = spec("quick", R"({"do":"lines","count":1,"value":1})");
        RILLE_CO_CHECK(co_await l.run->call(f, box.id, std::move(s), "test:quick"));
        if (r.epoch == 1) break;
      }
      CallSpec s = spec("hold", R"({"do":"hold","file":")" + r.dir.path + R"(/go","value":5})");
      if (r.epoch == 1) {
        Future<Result<>> never(*l.loop);
        RILLE_CO_CHECK(co_await never);
      }
      co_return co_await l.run->call(f, box.id, std::move(s), "test:hold");
    };
  };
  auto first = r.begin([&](Live& l) { return script(l); });
  auto recorded = [&] {
    bool is = false;
    (void)first->journal->reader().query("SELECT 1 FROM entries WHERE name='quick'", {},
                                         [&](const store::Row&) { is = true; });
    return is;
  };
  // Nothing of the loop runs between the commit and the end.
  first->loop->run_until(recorded);
  first.reset();
  std::string kept = r.instance() + "/calls";
  auto second = r.begin([&](Live& l) { return script(l); });
  until(*second, [&] { return r.printed.find("holding") != std::string::npos && r.calls_kept() == 1; });
  std::ofstream(r.dir.path + "/go") << "x";
  second->loop->run_until([&] { return second->out.has_value(); });
  REQUIRE(second->out->ok());
}

TEST_CASE("a call that a killed runner began ends when the resumed one cancels it while it replays") {
  Runner r;
  auto script = [&](Live& l) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await l.run->rent(f, "box", Value(Value::Object{}), "test"));
      CppGuest::Body body = [&l, id = box.id, &r](FiberId g) -> Async<Value> {
        CallSpec s = spec("hold", R"({"do":"hold","file":")" + r.dir.path + R"(/go","value":5})");
        co_return co_await l.run->call(g, id, std::move(s), "test:hold");
      };
      RILLE_CO_TRY(FiberId c, l.run->spawn(f, "w", l.guest->function(std::move(body)), Value()));
      for (bool lost = false; !lost; lost = r.printed.find("holding") != std::string::npos)
        RILLE_CO_CHECK(co_await sleep_for(*l.loop, r.epoch == 1 ? 5 : 0));
      RILLE_CO_TRY(StepTicket ticket, co_await l.run->step_begin(f, Operation("", "decided", Value(), "test"), {}));
      if (!ticket.recorded) RILLE_CO_CHECK(co_await l.run->step_end(f, ticket, Value(1)));
      if (r.epoch > 1) l.run->cancel_fiber(c, make_error(ErrorKind::cancelled, "lost"));
      Future<Result<>> never(*l.loop);
      RILLE_CO_CHECK(co_await never);
      co_return Value();
    };
  };
  auto live = r.begin(script);
  auto rows = [&](const char* sql) {
    bool is = false;
    (void)live->journal->reader().query(sql, {}, [&](const store::Row&) { is = true; });
    return is;
  };
  until(*live, [&] {
    return rows("SELECT 1 FROM entries WHERE name='decided'") && rows("SELECT 1 FROM begun WHERE name='hold'");
  });
  REQUIRE(r.calls_kept() == 1);
  live = nullptr;
  live = r.begin(script);
  until(*live, [&] { return r.calls_kept() == 0; });
  CHECK(r.count("call") == 1);  // it was not joined for that
}

TEST_CASE("a cancelled call ends on its instance, also after the connection broke") {
  Runner r;
  FiberId child = 0;
  std::string lease;
  auto script = [&](Live& l) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await l.run->rent(f, "box", Value(Value::Object{}), "test"));
      CppGuest::Body body = [&l, id = box.id, &r](FiberId g) -> Async<Value> {
        CallSpec s = spec("hold", R"({"do":"hold","file":")" + r.dir.path + R"(/go","value":5})");
        co_return co_await l.run->call(g, id, std::move(s), "test:hold");
      };
      ScopeId scope = l.run->scope_enter(f, "race");
      RILLE_CO_TRY(FiberId c, l.run->spawn(f, "w", l.guest->function(std::move(body)), Value()));
      child = c;
      RILLE_CO_CHECK(co_await l.run->scope_settle(f, scope, std::nullopt));
      l.run->scope_leave(f, scope);
      Future<Result<>> never(*l.loop);  // the box is still held
      RILLE_CO_CHECK(co_await never);
      co_return Value();
    };
  };
  auto live = r.begin(script);
  until(*live, [&] { return r.printed.find("holding") != std::string::npos; });
  std::string directory = r.instance();
  auto workers = [&] {
    std::size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/calls"))
      n += find_processes({{}, "RILLE_CALL=" + entry.path().string(), true}).size();
    return n;
  };
  REQUIRE(workers() == 1);
  SECTION("at once") { live->run->cancel_fiber(child, make_error(ErrorKind::cancelled, "lost")); }
  SECTION("while the channel is down") {
    // The channel's command dies; the runner hears of both in one turn.
    for (pid_t pid : find_processes({{getpid()}, "", false}))
      if (std::ifstream line("/proc/" + std::to_string(pid) + "/cmdline"); line) {
        std::string text{std::istreambuf_iterator<char>(line), {}};
        if (text.find("connect") != std::string::npos) kill(pid, SIGKILL);
      }
    live->run->cancel_fiber(child, make_error(ErrorKind::cancelled, "lost"));
  }
  until(*live, [&] { return workers() == 0 && r.calls_kept() == 0; });
}

// A checkpoint is kept by its step, wherever a hostile machine says that it is.
TEST_CASE("a machine that names a parent folder as its checkpoint removes and replaces nothing here") {
  namespace fs = std::filesystem;
  for (const char* directory : {"x/..", "..", ".", "/", "x/../..", "checkpoints/2/../.."}) {
    INFO(directory);
    Runner r;
    r.self_exe = r.dir.path + "/hostile";
    std::ofstream(r.self_exe) << "#!/bin/sh\nexec python3 -B " HOSTILE_AGENT " checkpoint:" << directory << " \"$@\"\n";
    fs::permissions(r.self_exe, fs::perms::owner_all);
    const fs::path all = r.dir.path + "/runs/r/checkpoints";
    fs::create_directories(all / "other/step-00000001");
    const Result<Value> out = r.run([](Live& l) -> CppGuest::Body {
      return [&l](FiberId f) -> Async<Value> {
        RILLE_CO_TRY(LeaseView box, co_await l.run->rent(f, "box", Value(Value::Object{}), "test"));
        CallSpec s = spec("work", "{}");
        s.keep_checkpoints = true;
        co_return co_await l.run->call(f, box.id, std::move(s), "test:call");
      };
    });
    REQUIRE(out.ok());
    CHECK(*out == Value(7));
    CHECK(fs::is_directory(all / "other/step-00000001"));
    fs::path kept;
    std::size_t folders = 0;
    for (const auto& entry : fs::directory_iterator(all)) {
      ++folders;
      if (entry.path().filename() != "other") kept = entry.path();
    }
    CHECK(folders == 2);
    for (const char* step : {"step-00000002", "step-00000003"}) {
      std::string text;
      std::ifstream(kept / step / "a") >> text;
      CHECK(text == "stolen");
    }
    CHECK(std::distance(fs::directory_iterator(kept), fs::directory_iterator()) == 2);
  }
}

namespace {
// A program in the place of `rille` that notes each connection, and runs the shell's words.
void stand_in(Runner& r, const std::string& words) {
  r.self_exe = r.dir.path + "/hostile";
  std::ofstream(r.self_exe) << "#!/bin/sh\necho >>" << r.dir.path << "/connections\n" << words << '\n';
  std::filesystem::permissions(r.self_exe, std::filesystem::perms::owner_all);
}

std::string liar(const std::string& lie) { return "exec python3 -B " HOSTILE_AGENT " '" + lie + "' \"$@\""; }

std::size_t connections(const Runner& r) {
  std::ifstream in(r.dir.path + "/connections");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
}
}  // namespace

TEST_CASE("a machine whose agent breaks the protocol ends its call with one error, and is not connected to again") {
  for (const char* lie : {"banner", "frame:9", "frame:1", "status:{}", "restless:{\"attempt\":-1}"}) {
    INFO(lie);
    Runner r;
    stand_in(r, liar(lie));
    const Result<Value> out = r.run(one_call("{}"));
    REQUIRE_FALSE(out.ok());
    CHECK(out.error().kind == ErrorKind::integrity);
    CHECK_FALSE(out.error().retryable);
    CHECK(connections(r) == 1);
    CHECK(r.count("reconnect") == 0);
  }
}

TEST_CASE("a machine whose agent breaks the protocol is replaced like a lost one") {
  Runner r;
  const std::string lied = r.dir.path + "/lied";
  stand_in(r, "if [ -e " + lied + " ]; then exec " AGENT_HELPER " \"$@\"; fi\n: >" + lied + "\n" + liar("frame:9"));
  const Result<Value> out = r.run([](Live& l) -> CppGuest::Body {
    return [&l](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await l.run->rent(f, "box", Value().set("on_loss", "replace"), "test"));
      CallSpec s = spec("work", R"({"do":"lines","count":1,"value":1})");
      co_return co_await l.run->call(f, box.id, std::move(s), "test:call");
    };
  });
  if (!out) FAIL(out.error().summary());
  CHECK(*out == Value(1));
  CHECK(r.count("replace") == 1);
}

TEST_CASE("an agent that says that its call gets on is not believed for ever") {
  for (const char* said : {R"({"idle_attempts":0})", R"({"idle_attempts":0,"checkpoint":{"step":4}})",
                           R"({"state":"absent","attempt":0})", R"({"state":"running","idle_attempts":0})"}) {
    INFO(said);
    Runner r;
    r.restarts.attempts_max = 3;
    r.restarts.initial_ms = 1;
    stand_in(r, liar("restless:" + std::string(said)));
    const Result<Value> out = r.run(one_call("{}"));
    REQUIRE_FALSE(out.ok());
    CHECK(out.error().code == "restarts_max");
    CHECK(r.count("call_restarted") <= 4);
  }
}

TEST_CASE("an agent whose call goes back to an earlier attempt lies") {
  Runner r;
  r.restarts.initial_ms = 1;
  stand_in(r, liar(R"(restless:{"falls":true})"));
  const Result<Value> out = r.run(one_call("{}"));
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().kind == ErrorKind::integrity);
  CHECK(r.count("call_restarted") == 1);
}

TEST_CASE("what is fetched from a machine counts against disk_bytes") {
  Runner r;
  r.limits.disk = std::make_shared<DiskUse>(150'000);
  stand_in(r, liar("big"));
  const std::string target = r.dir.path + "/target";
  const Result<Value> out = r.run([&](Live& l) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await l.run->rent(f, "box", Value(Value::Object{}), "test"));
      RILLE_CO_CHECK(co_await l.run->get(f, box.id, "loot", target, Value(Value::Object{}), "test:get"));
      co_return co_await l.run->get(f, box.id, "loot", target + "2", Value(Value::Object{}), "test:get2");
    };
  });
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().kind == ErrorKind::quota);
  CHECK(out.error().code == "disk_bytes");
  CHECK(std::filesystem::file_size(target + "/a") == 100'000);
  CHECK_FALSE(std::filesystem::exists(target + "2/a"));
}

TEST_CASE("what is fetched to be staged counts against disk_bytes, a file of this machine does not") {
  Runner r;
  r.limits.disk = std::make_shared<DiskUse>(150'000);
  const std::string source = r.dir.path + "/source";
  std::ofstream(source) << std::string(100'000, 'x');
  const Result<Value> out = r.run([&](Live& l) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      const Value none{Value::Object{}};
      RILLE_CO_TRY(LeaseView box, co_await l.run->rent(f, "box", none, "test"));
      RILLE_CO_CHECK(co_await l.run->stage(f, box.id, source, "a", none, "test:0"));
      RILLE_CO_CHECK(co_await l.run->stage(f, box.id, source, "b", none, "test:1"));
      RILLE_CO_CHECK(co_await l.run->stage(f, box.id, "file://" + source, "c", none, "test:2"));
      std::filesystem::copy_file(source, source + "2");
      co_return co_await l.run->stage(f, box.id, "file://" + source + "2", "d", none, "test:3");
    };
  });
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().kind == ErrorKind::quota);
  CHECK(out.error().code == "disk_bytes");
  CHECK(r.count("staged") == 3);
  std::uintmax_t bytes = 0;
  for (const auto& e : std::filesystem::directory_iterator(r.dir.path + "/runs/r/staged")) bytes += e.file_size();
  CHECK(bytes == 100'000);
}

TEST_CASE("checkpoints that are kept count against disk_bytes") {
  Runner r;
  r.limits.disk = std::make_shared<DiskUse>(150'000);
  stand_in(r, liar("checkpoint:big"));
  const Result<Value> out = r.run([](Live& l) -> CppGuest::Body {
    return [&l](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await l.run->rent(f, "box", Value(Value::Object{}), "test"));
      CallSpec s = spec("work", "{}");
      s.keep_checkpoints = true;
      co_return co_await l.run->call(f, box.id, std::move(s), "test:call");
    };
  });
  REQUIRE(out.ok());
  CHECK(r.count("checkpoint_kept") == 1);
  CHECK(r.count("warning") == 1);
}
