#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/workflow/agent/connection.hpp"
#include "runtime/workflow/agent/dead_man.hpp"
#include "runtime/workflow/agent/worker_channel.hpp"
#include "tests/unit/agent/fixture.hpp"

using namespace rille;
using namespace rille::agent;

namespace {
struct TurnedClock : Clock {
  std::int64_t now_ns = 1;
  std::int64_t wall_us() const override { return now_ns / 1000; }
  std::int64_t monotonic_ns() const override { return now_ns; }
};

// A raw peer at the agent's socket.
std::shared_ptr<Connection> raw(AgentFixture& f) {
  auto stream = f.wait(Stream::connect_unix(*f.loop, f.directory + "/agent.sock"));
  return Connection::over(*f.loop, std::move(stream).value());
}

std::unique_ptr<Stream> raw_stream(AgentFixture& f) {
  return f.wait(Stream::connect_unix(*f.loop, f.directory + "/agent.sock")).value();
}
}  // namespace

TEST_CASE("a silent peer is given up by the loop's clock") {
  TurnedClock clock;
  auto loop = Loop::create(clock).value();
  int pair[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  auto ours = Connection::over(*loop, Stream::adopt(*loop, pair[0]).value());
  ours->start_heartbeat({1, 30'000});
  clock.now_ns += 31'000'000'000;
  auto received = run_blocking(*loop, ours->receive());
  REQUIRE_FALSE(received.ok());
  CHECK(received.error().kind == ErrorKind::network);
  CHECK(received.error().retryable);
  CHECK(received.error().message.find("has sent nothing for 31s") != std::string::npos);
  close(pair[1]);
}

TEST_CASE("a peer that pings is not given up") {
  TurnedClock clock;
  auto loop = Loop::create(clock).value();
  int pair[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  auto a = Connection::over(*loop, Stream::adopt(*loop, pair[0]).value());
  auto b = Connection::over(*loop, Stream::adopt(*loop, pair[1]).value());
  a->start_heartbeat({1, 30'000});
  b->start_heartbeat({1, 30'000});
  int frames = 0;
  auto listen = [](std::shared_ptr<Connection> c, int& count) -> Task<void> {
    while ((co_await c->receive()).ok()) ++count;
  };
  loop->spawn(listen(a, frames));
  loop->spawn(listen(b, frames));
  // Time passes in steps that are each below the limit, with pings between them.
  for (int i = 0; i < 5; ++i) {
    clock.now_ns += 20'000'000'000;
    loop->run_until([&] {
      auto heard = [&](const auto& c) { return c->closed() || c->heard_ns() == clock.now_ns; };
      return heard(a) && heard(b);
    });
  }
  CHECK_FALSE(a->closed());
  CHECK_FALSE(b->closed());
  a->close(make_error(ErrorKind::cancelled, "end"));
  b->close(make_error(ErrorKind::cancelled, "end"));
}

TEST_CASE_METHOD(AgentFixture, "two connects at once make one agent") {
  auto one = [](AgentFixture& f, std::string& process) -> Task<void> {
    ChannelSpec channel{{}, f.directory};
    ClientOptions options;
    options.agent_argv = {AGENT_HELPER, "agent"};
    options.token = f.token;
    auto client = co_await AgentClient::connect(*f.loop, channel, options);
    process = client.ok() ? (*client)->info().process : client.error().summary();
  };
  std::string a, b, c;
  loop->spawn(one(*this, a));
  loop->spawn(one(*this, b));
  loop->spawn(one(*this, c));
  loop->run_until([&] { return !a.empty() && !b.empty() && !c.empty(); });
  CHECK(a.size() == 16);
  CHECK(a == b);
  CHECK(b == c);
}

TEST_CASE_METHOD(AgentFixture, "a channel that cannot be opened says what its command said") {
  prefix = {"sh", "-c", "echo 'Permission denied (publickey).' >&2; exit 255"};
  auto client = try_connect();
  REQUIRE_FALSE(client.ok());
  CHECK(client.error().kind == ErrorKind::network);
  CHECK(client.error().retryable);
  CHECK(client.error().message.find("exit code 255") != std::string::npos);
  CHECK(client.error().hint.find("Permission denied") != std::string::npos);
  prefix = {"sh", "-c", "echo 'Welcome to the machine'; exec cat >/dev/null"};
  auto banner = try_connect();
  REQUIRE_FALSE(banner.ok());
  CHECK(banner.error().message.find("agent protocol") != std::string::npos);
  CHECK(banner.error().kind == ErrorKind::integrity);
  prefix = {"no-such-ssh"};
  CHECK(try_connect().error().kind == ErrorKind::io);
  prefix.clear();
  directory = temp.file("nowhere");
  auto nowhere = try_connect();
  REQUIRE_FALSE(nowhere.ok());
  CHECK(nowhere.error().kind == ErrorKind::state);
}

TEST_CASE_METHOD(AgentFixture,
                 "an error that a peer sent before it closed is read, although writing to the peer fails") {
  int from[2], to[2];
  REQUIRE(pipe2(from, O_CLOEXEC) == 0);
  REQUIRE(pipe2(to, O_CLOEXEC) == 0);
  close(to[0]);
  auto in = Stream::adopt(*loop, from[0]), out = Stream::adopt(*loop, to[1]);
  REQUIRE(in.ok());
  REQUIRE(out.ok());
  auto connection = Connection::over(*loop, **in, **out, nullptr);
  CHECK_FALSE(wait(connection->send(Frame{})).ok());
  CHECK_FALSE(connection->post(Frame{}).ok());
  Frame told;
  told.type = FrameType::error;
  told.header.set("error", error_to_value(make_error(ErrorKind::state, "released")));
  const std::string bytes = *encode_frame(told);
  REQUIRE(::write(from[1], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  const auto heard = wait(connection->receive());
  REQUIRE_FALSE(heard.ok());
  CHECK(heard.error().message == "released");
  close(from[1]);
}

TEST_CASE_METHOD(AgentFixture, "the agent refuses strangers with a structured error") {
  auto client = connect();
  auto refusal = [&](std::string bytes) {
    auto stream = raw_stream(*this);
    REQUIRE(wait(stream->write(bytes)).ok());
    auto peer = Connection::over(*loop, std::move(stream));
    auto answer = wait(peer->receive());
    REQUIRE_FALSE(answer.ok());
    return answer.error();
  };
  CHECK(refusal(std::string("\xff\xff\xff\x7f\x01", 5)).message.find("frame_bytes_max") != std::string::npos);
  CHECK(refusal(std::string("\x05\0\0\0\x63", 5)).message.find("unknown type") != std::string::npos);
  CHECK(refusal(encode_frame(Frame{FrameType::request, Value::Object{{"op", "describe"}}, ""}).value()).kind ==
        ErrorKind::integrity);
  Error other = refusal(encode_frame(Frame{FrameType::hello, Value::Object{{"protocol", 99}}, ""}).value());
  CHECK(other.kind == ErrorKind::config);
  CHECK(other.message.find("99") != std::string::npos);

  auto peer = raw(*this);
  const Value::Object hello{{"protocol", protocol_version}, {"token", token}, {"epoch", 1}};
  REQUIRE(peer->post(Frame{FrameType::hello, hello, ""}).ok());
  REQUIRE(wait(peer->receive())->type == FrameType::hello);
  REQUIRE(peer->post(Frame{FrameType::request, Value::Object{{"id", 5}, {"op", "dance"}}, ""}).ok());
  auto unknown = wait(peer->receive()).value();
  CHECK(unknown.header.number("id") == 5);
  CHECK(unknown.header["error"].text("kind") == "invalid");
  peer->close(make_error(ErrorKind::cancelled, "end"));
  CHECK(wait(client->describe()).ok());
}

TEST_CASE_METHOD(AgentFixture,
                 "describe reports the calls, shutdown ends everything, cancelling a wait ends only the wait") {
  auto client = connect();
  REQUIRE(wait(client->start(request("k", hold()))).ok());
  CancelSource impatient;
  loop->post([&] { impatient.cancel(make_error(ErrorKind::timeout, "too long")); });
  auto waited = wait(client->attach("k", 0, {}, impatient.token()));
  REQUIRE_FALSE(waited.ok());
  CHECK(waited.error().message == "too long");
  auto told = wait(client->describe()).value();
  CHECK(told["calls"].to_json() == R"([{"key":"k","state":"running"}])");
  CHECK(told.number("cores") >= 1);
  CHECK(told.number("disk_free_bytes") > 0);
  std::int64_t pid = client->info().pid;
  REQUIRE(wait(client->shutdown()).ok());
  (void)wait(client->wait_broken());
  CHECK(eventually([&] { return !alive(pid); }));
  CHECK(processes().empty());
  CHECK(std::filesystem::exists(directory + "/machine.json"));
}

TEST_CASE("without an agent there is no worker") {
  auto loop = Loop::create().value();
  TempDir temp;
  int fd = ::open("/dev/null", O_RDONLY);
  auto channel = WorkerChannel::open(*loop, temp.path, "k", fd);
  REQUIRE_FALSE(channel.ok());
  CHECK(channel.error().kind == ErrorKind::state);
  close(fd);
}

TEST_CASE("the dead man: expiry always, orphans only when nothing runs and nothing waits") {
  constexpr std::int64_t minute = 60'000'000, day = 24 * 60 * minute;
  using V = DeadMan::Verdict;
  InstanceFile machine;
  machine.orphan_after_ms = 30 * 60'000;
  DeadMan idle(machine, 0);
  CHECK(idle.look({29 * minute, false, false}) == V::live);
  CHECK(idle.look({29 * minute, true, false}) == V::live);  // a runner came by
  CHECK(idle.look({58 * minute, false, false}) == V::live);
  CHECK(idle.look({59 * minute, false, false}) == V::orphaned);
  DeadMan unfetched(machine, 0);
  CHECK(unfetched.look({6 * day, false, true}) == V::live);
  CHECK(unfetched.look({7 * day, false, true}) == V::orphaned);
  machine.expires_wall_us = 10 * day;
  DeadMan expiring(machine, 0);
  CHECK(expiring.look({9 * day, false, true}) == V::live);
  CHECK(expiring.look({10 * day, true, true}) == V::expired);
  machine.expires_wall_us = 0;
  machine.orphan_after_ms = 0;
  CHECK(DeadMan(machine, 0).look({1000 * day, false, false}) == V::live);
}

TEST_CASE("the dead man: unused for too long, even with a connection") {
  constexpr std::int64_t minute = 60'000'000;
  using V = DeadMan::Verdict;
  InstanceFile machine;
  machine.orphan_after_ms = 30 * 60'000;
  machine.idle_after_ms = 10 * 60'000;
  DeadMan idle(machine, 0);
  CHECK(idle.look({9 * minute, true, false, false}) == V::live);
  CHECK(idle.look({10 * minute, true, false, true}) == V::live);  // a call has run
  CHECK(idle.look({19 * minute, true, false, false}) == V::live);
  CHECK(idle.look({20 * minute, true, false, false}) == V::idle);  // though a runner is connected
  DeadMan unfetched(machine, 0);
  CHECK(unfetched.look({25 * minute, false, true, false}) == V::live);
  CHECK(unfetched.look({34 * minute, false, false, false}) == V::orphaned);
  DeadMan set_back(machine, 100 * minute);
  CHECK(set_back.look({5 * minute, true, false, false}) == V::live);
  CHECK(set_back.look({14 * minute, true, false, false}) == V::live);
  CHECK(set_back.look({15 * minute, true, false, false}) == V::idle);
}

namespace {
struct TimedFixture : AgentFixture {
  TimedFixture() {
    turn(1'000'000);
    prefix = {"env", "RILLE_TEST_CLOCK=" + temp.file("clock"), "RILLE_TEST_TICK=2"};
  }
  void turn(std::int64_t us) {  // whole or not at all: the agent reads it all the time
    write(temp.file("clock.new"), std::to_string(us));
    std::filesystem::rename(temp.file("clock.new"), temp.file("clock"));
  }
};
}  // namespace

TEST_CASE_METHOD(TimedFixture, "an agent whose time is up removes its instance and every process, running calls too") {
  write(directory + "/machine.json", R"({"id":"i-test","expires_wall_us":5000000})");
  auto client = connect();
  std::int64_t pid = client->info().pid;
  REQUIRE(wait(client->start(request("k", hold()))).ok());
  turn(5'000'000);
  auto end = wait(client->wait_broken());
  CHECK(end.error().message.find("ttl has passed") != std::string::npos);
  CHECK(eventually([&] { return !alive(pid); }));
  CHECK(processes().empty());
  CHECK_FALSE(std::filesystem::exists(directory));
}

TEST_CASE_METHOD(TimedFixture, "an unused agent reports that, removes its instance, and ends its machine") {
  write(directory + "/machine.json", R"({"id":"i-test","idle_after_ms":1000000,"idle_below":1,"end":["/bin/sh","-c",)"
                                     R"("touch )" +
                                         temp.file("ended") + R"("]})");
  auto client = connect();
  std::int64_t pid = client->info().pid, now_us = 1'000'000;
  REQUIRE(wait(client->start(request("k", hold()))).ok());
  for (int i = 0; i < 3; ++i) {  // a call runs: however late it is
    turn(now_us += 2'000'000'000);
    CHECK(wait(client->describe())->integer("channels") == 1);
  }
  REQUIRE(wait(client->cancel("k", "done", 0)).ok());
  REQUIRE(wait(client->attach("k", 0, {})).ok());
  REQUIRE(wait(client->acknowledge("k")).ok());
  CHECK(eventually([&] {
    turn(now_us += 400'000'000);
    return !alive(pid);
  }));
  auto end = wait(client->wait_broken());
  CHECK(end.error().code == "idle");
  CHECK(end.error().message.find("was idle for 16m40s") != std::string::npos);
  CHECK(eventually([&] { return std::filesystem::exists(temp.file("ended")); }));
  CHECK_FALSE(std::filesystem::exists(directory));
}

TEST_CASE_METHOD(TimedFixture, "a connection without a token keeps no machine alive") {
  write(directory + "/machine.json", R"({"id":"i-test","orphan_after_ms":1000000})");
  auto client = connect();
  const std::int64_t pid = client->info().pid;
  auto stranger = raw(*this);
  REQUIRE(stranger->post(Frame{}).ok());
  client.reset();
  std::int64_t now_us = 1'000'000;
  CHECK(eventually([&] {
    turn(now_us += 400'000'000);
    return !alive(pid);
  }));
  stranger->close(make_error(ErrorKind::cancelled, "end"));
}

TEST_CASE_METHOD(TimedFixture, "a container that does not end keeps no agent from ending its machine") {
  write(directory + "/machine.json", R"({"id":"i-test","expires_wall_us":5000000,"end":["/bin/sh","-c",)"
                                     R"("touch )" +
                                         temp.file("ended") + R"("]})");
  const std::string engine = temp.file("docker");
  write(engine, "#!/bin/sh\necho $1 >>" + temp.file("asked") + "\n[ $1 = container ]\n");  // still there
  std::filesystem::permissions(engine, std::filesystem::perms::owner_all);
  auto client = connect();
  std::filesystem::create_directories(directory + "/containers");
  write(directory + "/containers/rille-a-1", engine);
  turn(5'000'000);
  wait(client->wait_broken()).ok();
  CHECK(eventually([&] { return std::filesystem::exists(temp.file("ended")); }));
  CHECK(read(temp.file("asked")) == "rm\ncontainer\n");
  CHECK_FALSE(std::filesystem::exists(directory));
}

TEST_CASE_METHOD(TimedFixture,
                 "an agent that nobody visits any more removes its instance, or leaves the files of a "
                 "machine that goes on") {
  const bool keeps = GENERATE(false, true);
  write(directory + "/machine.json",
        std::string(R"({"id":"i-test","orphan_after_ms":1000000,"keeps_files":)") + (keeps ? "true}" : "false}"));
  auto client = connect();
  std::int64_t pid = client->info().pid, now_us = 1'000'000;
  client.reset();
  // However late it sees the runner leave, a thousand seconds after that are enough.
  CHECK(eventually([&] {
    turn(now_us += 400'000'000);
    return !alive(pid);
  }));
  CHECK(processes().empty());
  CHECK(std::filesystem::exists(directory) == keeps);
}
