#include <sys/wait.h>

#include "runtime/workflow/agent/call_files.hpp"
#include "runtime/workflow/agent/output_tail.hpp"
#include "runtime/workflow/agent/worker_channel.hpp"
#include "tests/unit/agent/fixture.hpp"

using namespace rille;
using namespace rille::agent;

namespace {
struct Heard {
  std::string log;
  Value progress, checkpoint;
  AttachHandlers handlers() {
    return {[this](std::string_view bytes, std::int64_t offset) {
              CHECK(offset == begin + static_cast<std::int64_t>(log.size()));
              log += bytes;
            },
            [this](const Value& v) { progress = v; }, [this](const Value& v) { checkpoint = v; }};
  }
  std::int64_t begin = 0;
};
}  // namespace

TEST_CASE_METHOD(AgentFixture, "a call runs, streams and keeps its result until acknowledged") {
  auto client = connect();
  auto started = wait(client->start(request("main/train#1", R"({"do":"lines","count":2000,"value":{"loss":0.5}})")));
  REQUIRE(started.ok());
  Heard heard;
  auto status = wait(client->attach("main/train#1", 0, heard.handlers())).value();
  REQUIRE(status.state == CallState::done);
  CHECK(status.result->value().number("loss") == 0.5);
  CHECK(heard.log.find("line 0\n") == 0);
  CHECK(heard.log.find("line 1999\n") != std::string::npos);
  CHECK(status.log_size_bytes == static_cast<std::int64_t>(heard.log.size()));

  Heard again;
  again.begin = 7;
  CHECK(wait(client->attach("main/train#1", 7, again.handlers()))->state == CallState::done);
  CHECK(again.log == heard.log.substr(7));

  CHECK(wait(client->acknowledge("main/train#1")).ok());
  CHECK(wait(client->acknowledge("main/train#1")).ok());
  CHECK(wait(client->attach("main/train#1", 0, {}))->state == CallState::absent);
  CHECK(std::filesystem::is_empty(directory + "/calls"));
}

TEST_CASE_METHOD(AgentFixture, "start is idempotent, and old epochs and generations are refused") {
  auto client = connect();
  REQUIRE(wait(client->start(request("k", hold(), 5, 2))).ok());
  REQUIRE(wait(client->start(request("k", hold(), 5, 2)))->state == CallState::running);
  for (auto [stale_epoch, generation] : {std::pair{4, 2}, std::pair{5, 1}}) {
    auto refused = wait(client->start(request("other", hold(), stale_epoch, generation)));
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().kind == ErrorKind::state);
  }
  REQUIRE(wait(client->start(request("k", hold(), 6, 2)))->state == CallState::running);
  CHECK_FALSE(wait(client->acknowledge("k")).ok());
  let_go();
  Heard heard;
  CHECK(wait(client->attach("k", 0, heard.handlers()))->result->value() == Value(42));
  CHECK(heard.log == "holding 1\ndone\n");
  // Done calls stay done, and the fence outlives the agent.
  CHECK(wait(client->start(request("k", hold(), 6, 2)))->state == CallState::done);
  kill(static_cast<pid_t>(client->info().pid), SIGKILL);
  (void)wait(client->wait_broken());
  CHECK(try_connect().error().code == "fenced");
  epoch = 6;
  client = connect();
  CHECK(wait(client->start(request("k", hold(), 6, 2)))->state == CallState::done);
  CHECK_FALSE(wait(client->start(request("k", hold(), 5, 2))).ok());
}

TEST_CASE_METHOD(AgentFixture, "a call outlives the client, and another client joins it") {
  auto client = connect();
  REQUIRE(wait(client->start(request("k", hold()))).ok());
  REQUIRE(eventually([&] { return wait(client->status("k"))->progress.number("pid") > 0; }));
  std::string process = client->info().process;
  client.reset();
  client = connect();
  CHECK(client->info().process == process);
  Heard heard;
  bool released = false;
  AttachHandlers handlers = heard.handlers();
  handlers.progress = [&](const Value& v) {
    heard.progress = v;
    let_go();
    released = true;
  };
  auto status = wait(client->attach("k", 0, handlers)).value();
  CHECK(released);
  CHECK(heard.progress.number("pid") > 0);
  CHECK(heard.log == "holding 1\ndone\n");
  CHECK(status.result->value() == Value(42));
}

TEST_CASE_METHOD(AgentFixture,
                 "after the agent was killed its call is absent, with the last checkpoint, and starts again") {
  auto client = connect();
  REQUIRE(wait(client->start(request("k", hold(R"(,"checkpoint":{"step":50})")))).ok());
  REQUIRE(eventually([&] { return !wait(client->status("k"))->checkpoint.is_null(); }));
  std::int64_t worker = static_cast<std::int64_t>(wait(client->status("k"))->progress.number("pid"));
  std::string process = client->info().process;
  kill(static_cast<pid_t>(client->info().pid), SIGKILL);
  auto broken = wait(client->attach("k", 0, {}));
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.error().kind == ErrorKind::network);
  CHECK(broken.error().retryable);
  CHECK(client->broken());
  CHECK(eventually([&] { return !alive(worker); }));

  client = connect();
  CHECK(client->info().process != process);
  auto absent = wait(client->attach("k", 0, {})).value();
  CHECK(absent.state == CallState::absent);
  CHECK(absent.checkpoint.number("step") == 50);
  let_go();
  REQUIRE(wait(client->start(request("k", hold()))).ok());
  Heard heard;
  CHECK(wait(client->attach("k", absent.log_size_bytes,
                            [&] {
                              heard.begin = absent.log_size_bytes;
                              return heard.handlers();
                            }()))
            ->result->ok());
  CHECK(heard.log == "holding 2\ndone\n");
}

TEST_CASE_METHOD(AgentFixture, "the next attempt knows what the last one published") {
  auto client = connect();
  REQUIRE(wait(client->start(request("k", hold(R"(,"checkpoint":{"step":7})")))).ok());
  REQUIRE(eventually([&] { return !wait(client->status("k"))->checkpoint.is_null(); }));
  kill(static_cast<pid_t>(client->info().pid), SIGKILL);
  (void)wait(client->wait_broken());
  client = connect();
  REQUIRE(wait(client->start(request("k", R"({"do":"checkpoint"})"))).ok());
  CHECK(wait(client->attach("k", 0, {}))->result->value().number("step") == 7);
}

TEST_CASE_METHOD(AgentFixture, "a worker that dies says how and its last words") {
  auto client = connect();
  REQUIRE(wait(client->start(request("k", R"({"do":"die","code":3})"))).ok());
  auto died = wait(client->attach("k", 0, {})).value();
  REQUIRE(died.state == CallState::done);
  REQUIRE_FALSE(died.result->ok());
  const Error& e = died.result->error();
  CHECK(e.kind == ErrorKind::internal);
  CHECK(e.message.find("exit code 3") != std::string::npos);
  CHECK(e.hint.find("last words") != std::string::npos);
  CHECK_FALSE(e.retryable);

  REQUIRE(wait(client->start(request("killed", hold()))).ok());
  REQUIRE(eventually([&] { return wait(client->status("killed"))->progress.number("pid") > 0; }));
  kill(static_cast<pid_t>(wait(client->status("killed"))->progress.number("pid")), SIGKILL);
  auto killed = wait(client->attach("killed", 0, {})).value();
  REQUIRE_FALSE(killed.result->ok());
  CHECK(killed.result->error().message.find("signal 9") != std::string::npos);
}

TEST_CASE_METHOD(AgentFixture, "cancel asks first and ends what does not heed") {
  auto client = connect();
  REQUIRE(wait(client->start(request("heeds", hold()))).ok());
  REQUIRE(eventually([&] { return wait(client->status("heeds"))->progress.number("pid") > 0; }));
  REQUIRE(wait(client->cancel("heeds", "enough", 1'000'000)).ok());
  auto heeded = wait(client->attach("heeds", 0, {})).value();
  REQUIRE_FALSE(heeded.result->ok());
  CHECK(heeded.result->error().kind == ErrorKind::cancelled);
  CHECK(heeded.result->error().message == "enough");

  REQUIRE(wait(client->start(request("stubborn", hold(R"(,"stubborn":true)")))).ok());
  REQUIRE(eventually([&] { return wait(client->status("stubborn"))->progress.number("pid") > 0; }));
  REQUIRE(wait(client->cancel("stubborn", "now", 1)).ok());
  auto ended = wait(client->attach("stubborn", 0, {})).value();
  REQUIRE_FALSE(ended.result->ok());
  CHECK(ended.result->error().kind == ErrorKind::cancelled);
  CHECK(wait(client->cancel("nobody", "x")).ok());

  // A program that ignores SIGTERM, with a child that left its session.
  REQUIRE(wait(client->start(request("exec", R"({"kind":"exec","argv":["sh","-c",
    "trap '' TERM; setsid sh -c 'echo $$ > child; exec sleep 1000' & while true; do sleep 1; done"]})")))
              .ok());
  std::string child = directory + "/work/child";
  REQUIRE(eventually([&] { return read(child).find('\n') != std::string::npos; }));
  REQUIRE(wait(client->cancel("exec", "over", 1)).ok());
  CHECK(wait(client->attach("exec", 0, {}))->result->error().kind == ErrorKind::cancelled);
  CHECK_FALSE(alive(std::stoll(read(child))));
}

TEST_CASE_METHOD(
    AgentFixture,
    "the agent itself enforces a timeout: it ends cooperative and stubborn calls, with and without a connection") {
  auto client = connect();
  std::string limit = R"(,"timeout_ms":50,"grace_ms":50,"name":"train"})";
  REQUIRE(wait(client->start(request("heeds", R"({"do":"hold","file":"never")" + limit))).ok());
  REQUIRE(wait(client->start(request("spins", R"({"do":"spin")" + limit))).ok());
  REQUIRE(wait(client->start(request("exec", R"({"kind":"exec","argv":["sh","-c",
    "trap '' TERM; setsid sh -c 'echo $$ > child; exec sleep 1000' & while true; do sleep 1; done"])" +
                                                 limit)))
              .ok());
  REQUIRE(wait(client->start(request("in time", R"({"kind":"exec","argv":["true"],"timeout_ms":600000})"))).ok());
  client.reset();
  std::string calls = directory + "/calls/";
  for (const char* key : {"heeds", "spins", "exec", "in time"})
    REQUIRE(eventually([&] { return std::filesystem::exists(calls + call_id(key) + "/result.json"); }));
  client = connect();
  for (const char* key : {"heeds", "spins", "exec"}) {
    INFO(key);
    auto status = wait(client->attach(key, 0, {})).value();
    REQUIRE_FALSE(status.result->ok());
    CHECK(status.result->error().kind == ErrorKind::timeout);
    CHECK(status.result->error().message.find("'train' took longer than its timeout of 50ms") != std::string::npos);
    CHECK_FALSE(status.result->error().retryable);
  }
  CHECK(wait(client->attach("in time", 0, {}))->result->ok());
  std::string child = read(directory + "/work/child");
  if (!child.empty()) CHECK_FALSE(alive(std::stoll(child)));
}

TEST_CASE_METHOD(AgentFixture, "what is forgotten is gone, whether it ran or was done") {
  auto client = connect();
  REQUIRE(wait(client->start(request("done", R"({"do":"lines","count":1})"))).ok());
  REQUIRE(wait(client->attach("done", 0, {})).ok());
  REQUIRE(wait(client->start(request("runs", hold()))).ok());
  REQUIRE(wait(client->forget({"done", "runs", "never was"}, "the run has ended")).ok());
  CHECK(eventually([&] { return std::filesystem::is_empty(directory + "/calls"); }));
  CHECK(wait(client->status("runs"))->state == CallState::absent);
}

TEST_CASE_METHOD(AgentFixture, "a call that is done starts anew after the attempt that is named, with its log") {
  auto client = connect();
  REQUIRE(wait(client->start(request("k", hold(R"(,"checkpoint":{"step":5})")))).ok());
  REQUIRE(eventually([&] { return !wait(client->status("k"))->checkpoint.is_null(); }));
  CHECK(wait(client->status("k"))->idle_attempts == 0);
  kill(static_cast<pid_t>(wait(client->status("k"))->progress.number("pid")), SIGKILL);
  auto died = wait(client->attach("k", 0, {})).value();
  REQUIRE(died.attempt == 1);
  let_go();
  auto again = request("k", hold());
  again.after_attempt = 2;
  CHECK(wait(client->start(again))->state == CallState::done);
  again.after_attempt = 1;
  CHECK(wait(client->start(again))->state == CallState::running);
  (void)wait(client->start(again));  // sent twice: still the second attempt
  Heard heard;
  auto status = wait(client->attach("k", 0, heard.handlers())).value();
  CHECK(status.result->ok());
  CHECK(status.attempt == 2);
  CHECK(status.idle_attempts == 1);
  CHECK(status.checkpoint.number("step") == 5);
  CHECK(heard.log == "holding 1\nholding 2\ndone\n");
}

TEST_CASE_METHOD(AgentFixture, "exec runs programs with their output, code, signal and environment") {
  auto client = connect();
  auto run = [&](const std::string& key, const std::string& spec, Heard& heard) {
    REQUIRE(wait(client->start(request(key, spec))).ok());
    return wait(client->attach(key, 0, heard.handlers())).value();
  };
  Heard out;
  auto status =
      run("a", R"({"kind":"exec","argv":["sh","-c","echo $X; echo err >&2; exit 3"],"env":{"X":"hello"}})", out);
  CHECK(status.result->value().number("code") == 3);
  CHECK(out.log == "hello\nerr\n");
  Heard killed, missing, bad, own;
  CHECK(run("b", R"({"kind":"exec","argv":["sh","-c","kill -11 $$"]})", killed).result->value().number("signal") == 11);
  auto none = run("c", R"({"kind":"exec","argv":["no-such-program-here"]})", missing);
  REQUIRE_FALSE(none.result->ok());
  CHECK(none.result->error().message.find("no-such-program-here") != std::string::npos);
  CHECK(run("d", R"({"kind":"exec","argv":"sh"})", bad).result->error().kind == ErrorKind::invalid);
  auto environment = run("e", R"({"do":"environment"})", own).result->value();
  CHECK(environment.text("RILLE_INSTANCE") == directory);
  CHECK(environment.text("directory") == directory + "/work");
  CHECK(environment.text("GOMP_SPINCOUNT") == "2000");
}

TEST_CASE_METHOD(AgentFixture, "a program has a folder, an input, and its output in its result") {
  auto client = connect();
  auto run = [&](const std::string& key, const std::string& spec) {
    REQUIRE(wait(client->start(request(key, spec))).ok());
    return *wait(client->attach(key, 0, {}))->result;
  };
  auto made = run("make", R"({"kind":"exec","argv":["mkdir","-p","a/b"]})");
  CHECK(made->text("output").empty());
  auto said = run("say", R"({"kind":"exec","argv":["sh","-c","basename $PWD; cat; echo e >&2"],"directory":"a/b",)"
                         R"("stdin":"one\ntwo\n"})");
  CHECK(said->text("output") == "b\none\ntwo\ne\n");
  CHECK((*said)["output_cut"].is_null());
  CHECK(run("empty", R"({"kind":"exec","argv":["cat"]})")->text("output").empty());
  auto none = run("none", R"({"kind":"exec","argv":["true"],"directory":"a/c"})");
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message == "exec: there is no folder 'a/c' on the instance");
  CHECK_FALSE(run("out", R"({"kind":"exec","argv":["true"],"directory":".."})").ok());
  auto many = run("many", R"({"kind":"exec","argv":["seq","100000"]})");
  const std::string tail = many->text("output");
  CHECK(many->boolean("output_cut"));
  CHECK(tail.size() <= output_bytes_max);
  CHECK(tail.size() > output_bytes_max - 10);
  CHECK(tail.ends_with("\n99999\n100000\n"));
  CHECK(tail.find_first_not_of("0123456789\n") == std::string::npos);
  CHECK(tail.substr(0, tail.find('\n')).size() == 5);  // a whole line
}

TEST_CASE("the end of a long output") {
  OutputTail tail;
  tail.add(std::string(output_bytes_max, 'a'));
  CHECK_FALSE(tail.cut());
  CHECK(tail.text().size() == output_bytes_max);
  tail.add("\n");
  CHECK(tail.cut());
  CHECK(tail.text() == std::string(output_bytes_max - 1, 'a') + "\n");
  for (int i = 0; i < 100'000; ++i) tail.add("\xc3\xa4");
  CHECK(tail.text().size() == output_bytes_max);
  tail.add("b");
  CHECK(tail.text().size() == output_bytes_max - 1);  // not half a character
  CHECK(tail.text().substr(0, 2) == "\xc3\xa4");
}

TEST_CASE_METHOD(AgentFixture, "limits name themselves: result and log") {
  auto client = connect();
  REQUIRE(wait(client->start(request("k", R"({"do":"huge"})"))).ok());
  auto status = wait(client->attach("k", 0, {})).value();
  REQUIRE_FALSE(status.result->ok());
  CHECK(status.result->error().message.find("result_bytes_max") != std::string::npos);
  REQUIRE(wait(client->start(request("log", R"({"do":"lines","count":100000})"))).ok());
  Heard heard;
  CHECK(wait(client->attach("log", 0, heard.handlers()))->result->ok());
  CHECK(heard.log.size() < (257 << 10));
  CHECK(heard.log.find("log_bytes_max") != std::string::npos);
}

TEST_CASE("a log keeps its last lines within reach") {
  TempDir temp;
  CallFiles files(temp.path);
  REQUIRE(files.open_log().ok());
  CHECK(files.last_lines().empty());
  REQUIRE(files.append_log("only\n", 1000).ok());
  CHECK(files.last_lines() == "\n    only");
  REQUIRE(files.append_log("1\n2\n3\n4\n5\n6\n", 1000).ok());
  CHECK(files.last_lines() == "\n    2\n    3\n    4\n    5\n    6");
}

namespace {
// An exec whose program leaves a process with no environment and no session of ours; gives that process.
pid_t leave_stray(AgentFixture& at, AgentClient& client, bool stay = false) {
  std::string out = at.temp.file("stray");
  std::string shell = "env -i setsid sh -c 'echo $$ >" + out + ".part; mv " + out + ".part " + out +
                      "; exec sleep 600' >/dev/null 2>&1 </dev/null &";
  if (stay) shell += " wait";
  Value spec = Value().set("kind", "exec").set("argv", Value::Array{"sh", "-c", shell});
  REQUIRE(at.wait(client.start({"stray", 1, 1, spec})).ok());
  if (!stay) REQUIRE(at.wait(client.attach("stray", 0, {}))->state == CallState::done);
  REQUIRE(at.eventually([&] { return std::filesystem::exists(out); }));
  return static_cast<pid_t>(std::stol(at.read(out)));
}
}  // namespace

TEST_CASE_METHOD(AgentFixture, "a process without our environment and session ends with a killed agent") {
  auto client = connect();
  pid_t stray = leave_stray(*this, *client);
  REQUIRE(alive(stray));
  kill(static_cast<pid_t>(client->info().pid), SIGKILL);
  (void)wait(client->wait_broken());
  CHECK(eventually([&] { return !alive(stray); }));
  CHECK(eventually([&] { return processes().empty(); }));
  client = connect();  // and the next agent comes up
  CHECK(wait(client->describe()).ok());
}

TEST_CASE_METHOD(AgentFixture, "a process without our environment ends, too, when agent and keeper were killed") {
  auto client = connect();
  pid_t stray = leave_stray(*this, *client), agent = static_cast<pid_t>(client->info().pid);
  auto known = [&] { return decode_processes(read(directory + "/agent.tree")); };
  auto listed = [&](pid_t pid) {
    for (const ProcessId& p : known())
      if (p.pid == pid) return true;
    return false;
  };
  REQUIRE(eventually([&] { return listed(stray); }));
  pid_t keeper = known()[0].pid;
  REQUIRE(keeper != agent);
  SECTION("the keeper alone: the agent goes on") {
    kill(keeper, SIGKILL);
    CHECK(eventually([&] { return !alive(keeper); }));
    auto second = connect();
    CHECK(second->info().pid == agent);
    CHECK(alive(stray));
  }
  SECTION("both: the next one ends what they left") {
    kill(keeper, SIGSTOP);  // so that it ends nothing
    kill(agent, SIGKILL);
    kill(keeper, SIGKILL);
    CHECK(eventually([&] { return !alive(keeper) && !alive(agent); }));
    CHECK(alive(stray));
    client = connect();
    CHECK(client->info().pid != agent);
    CHECK_FALSE(alive(stray));
  }
  kill(stray, SIGKILL);
}

TEST_CASE_METHOD(AgentFixture, "a process without our environment and session ends with its call's cancellation") {
  auto client = connect();
  pid_t stray = leave_stray(*this, *client, true);
  REQUIRE(wait(client->cancel("stray", "enough", 10'000)).ok());
  auto status = wait(client->attach("stray", 0, {})).value();
  REQUIRE(status.state == CallState::done);
  CHECK(status.result->error().kind == ErrorKind::cancelled);
  CHECK_FALSE(alive(stray));
  kill(stray, SIGKILL);
}

TEST_CASE("a list of processes reads as far as it is whole, and only in the boot that wrote it") {
  ProcessId self{getpid(), process_start_time(getpid()).value()};
  std::string text = encode_processes({self, {4242, 7}});
  CHECK(decode_processes(text) == std::vector<ProcessId>{self, {4242, 7}});
  CHECK(decode_processes(text.substr(0, text.size() - 1)) == std::vector<ProcessId>{self});
  CHECK(decode_processes("another boot" + text).empty());
  CHECK(decode_processes("").empty());
  CHECK(decode_processes(text.substr(0, text.find('\n') + 1) + "1 2\n0 1\n-1 3\n12x 4\n").empty());
}

TEST_CASE_METHOD(AgentFixture, "a process with a listed id and another start time is not touched") {
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  std::uint64_t began = process_start_time(child).value();
  CHECK(find_processes({{}, {}, true, {{child, began + 1}}}).empty());
  CHECK(kill_processes({{}, {}, true, {{child, began + 1}}}, 1000).ok());
  write(directory + "/agent.tree", encode_processes({{child, began + 1}}));
  auto client = connect();
  CHECK(alive(child));
  CHECK(find_processes({{}, {}, true, {{child, began}}}) == std::vector<pid_t>{child});
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}
