// Pulls over a channel: killed agents, addresses that expire, cancelled pulls, machines that lie.
#include <atomic>
#include <set>
#include <thread>

#include "runtime/workflow/agent/frame.hpp"
#include "tests/unit/agent/pull_fixture.hpp"

using namespace rille;
using namespace rille::agent;
using Request = ScriptedServer::Request;
using Wire = ScriptedServer::Wire;

namespace {

struct HostilePull : PullFixture {
  std::unique_ptr<AgentClient> meet(const std::string& lie) {
    ChannelSpec channel{{"python3", "-B", HOSTILE_AGENT, lie}, directory};
    ClientOptions options;
    options.agent_argv = {"agent"};
    options.build = "test";
    options.token = token;
    auto client = wait(AgentClient::connect(*loop, channel, options));
    if (!client) FAIL(client.error().summary());
    return std::move(*client);
  }
};

PullSign always(const std::string& url) {
  return [url](CancelToken) -> Async<PullAddress> {
    PullAddress address;
    address.url = url;
    co_return address;
  };
}

}  // namespace
TEST_CASE_METHOD(PullFixture, "a killed agent's pull goes on with the next agent") {
  int answers = 0;
  bool holds = true;
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (++answers > 5 && holds) w.hold();
    else serve(r, w);
  });
  auto client = connect();
  CancelSource stop;
  std::optional<Result<Pulled>> first;
  auto begin = [](AgentClient& c, PullRequest r, PullSign s, std::optional<Result<Pulled>>& out) -> Task<void> {
    out.emplace(co_await c.pull(std::move(r), std::move(s)));
  };
  loop->spawn(begin(*client, request, always(server.url()), first));
  REQUIRE(eventually([&] {
    const std::string now = note_path().empty() ? "" : states();
    return std::count(now.begin(), now.end(), '1') == 5;
  }));
  const auto agent = wait(client->describe()).value().integer("pid");
  REQUIRE(::kill(static_cast<pid_t>(agent), SIGKILL) == 0);
  REQUIRE(eventually([&] { return first.has_value(); }));
  CHECK(first->error().kind == ErrorKind::network);
  std::set<std::string> finished;
  for (std::size_t i = 0; i < 5; ++i) finished.insert(server.requests()[i].header("range"));
  server.quietly([&] { holds = false; });
  REQUIRE(eventually([&] { return !alive(agent); }));
  client = connect();
  auto pulled = wait(client->pull(request, always(server.url())));
  if (!pulled) FAIL(pulled.error().summary());
  CHECK(read(file()) == content);
  for (const auto& [range, times] : ranges(server)) CHECK((!finished.contains(range) || times == 1));
}

TEST_CASE_METHOD(PullFixture, "an address that expires on the way is signed again while the transfer advances") {
  std::atomic<int> given = 0;
  int answers = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    const bool valid = r.target == "/o?sig=" + std::to_string(given) && ++answers % 5 != 0;
    if (valid) serve(r, w);
    else w.answer(403, "Request has expired");
  });
  PullSign sign = [&](CancelToken) -> Async<PullAddress> {
    PullAddress address;
    address.url = server.url("/o?sig=" + std::to_string(++given));
    co_return address;
  };
  request.parallel = 1;
  auto client = connect();
  std::int64_t told = 0;
  auto pulled = wait(client->pull(request, sign, [&](std::int64_t done, std::int64_t) { told = done; }));
  if (!pulled) FAIL(pulled.error().summary());
  CHECK(read(file()) == content);
  CHECK(given == 3);
  CHECK(told > 0);

  given = 0, request.path = "never", request.key = "never";
  ScriptedServer closed([&](const Request&, Wire& w) { w.answer(403, ""); });
  PullSign vain = [&](CancelToken) -> Async<PullAddress> {
    PullAddress address;
    address.url = closed.url("/o?sig=" + std::to_string(++given));
    co_return address;
  };
  auto refused = wait(client->pull(request, vain));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::auth);
  CHECK(refused.error().summary().find("sig=") == std::string::npos);
  CHECK(given == 2);
}

TEST_CASE_METHOD(PullFixture, "a cancelled pull ends on the agent, too; a fenced runner pulls and prunes nothing") {
  std::atomic<bool> hung_up = false;
  ScriptedServer server([&](const Request&, Wire& w) {
    w.hold();
    hung_up = true;
  });
  auto client = connect();
  CancelSource stop;
  std::optional<Result<Pulled>> got;
  auto begin = [](AgentClient& c, PullRequest r, PullSign s, CancelToken t,
                  std::optional<Result<Pulled>>& out) -> Task<void> {
    out.emplace(co_await c.pull(std::move(r), std::move(s), {}, t));
  };
  loop->spawn(begin(*client, request, always(server.url()), stop.token(), got));
  REQUIRE(eventually([&] { return server.count() > 0; }));
  stop.cancel(make_error(ErrorKind::cancelled, "enough"));
  REQUIRE(eventually([&] { return got.has_value() && hung_up; }));
  CHECK(got->error().kind == ErrorKind::cancelled);
  CHECK_FALSE(client->broken());

  epoch = 2;
  auto newer = connect();
  CHECK(wait(client->pull(request, always(server.url()))).error().kind == ErrorKind::state);
  CHECK(wait(client->prune("data", {})).error().kind == ErrorKind::state);
  CHECK(wait(newer->prune("data", {})).ok());
}

TEST_CASE_METHOD(PullFixture,
                 "more pulls than a channel takes at once wait for each other, also when some are cancelled") {
  std::atomic<bool> answers = false;
  ScriptedServer server([&](const Request& r, Wire& w) {
    while (!answers) std::this_thread::yield();
    serve(r, w);
  });
  const std::shared_ptr<void> at_end(nullptr, [&](void*) { answers = true; });  // else the server would not end
  content = "small", request.size_bytes = 5;
  auto client = connect();
  const auto count = static_cast<int>(pulls_max) + 40;
  CancelSource stop;
  std::vector<Result<Pulled>> got, cancelled;
  auto begin = [](AgentClient& c, PullRequest r, PullSign s, CancelToken t,
                  std::vector<Result<Pulled>>& out) -> Task<void> {
    out.push_back(co_await c.pull(std::move(r), std::move(s), {}, std::move(t)));
  };
  for (int i = 0; i < 2 * count; ++i) {
    request.path = "data/" + std::to_string(i), request.key = std::to_string(i);
    const bool ends = i < count;
    loop->spawn(begin(*client, request, always(server.url("/" + request.key)), ends ? stop.token() : CancelToken(),
                      ends ? cancelled : got));
  }
  REQUIRE(wait(client->describe()).ok());  // the agent has read what was asked before
  CHECK(cancelled.empty());
  stop.cancel(make_error(ErrorKind::cancelled, "enough"));
  REQUIRE(eventually([&] { return cancelled.size() == static_cast<std::size_t>(count); }));
  REQUIRE(wait(client->describe()).ok());
  answers = true;
  REQUIRE(eventually([&] { return got.size() == static_cast<std::size_t>(count); }));
  for (const auto& one : cancelled) CHECK(one.error().kind == ErrorKind::cancelled);
  for (const auto& one : got) {
    if (!one) FAIL(one.error().summary());
    CHECK(one->size_bytes == 5);
  }
}

TEST_CASE_METHOD(PullFixture,
                 "prune keeps more names than a frame holds, and a folder is removed with all that it has") {
  std::filesystem::create_directories(file("set/m"));
  for (const char* name : {"a", "aa", "m/x", "m/y", "z", "zz"}) write(file(std::string("set/") + name), "x");
  std::vector<std::string> keep = {"z", "m/x", "a"};
  for (int i = 0; i < 6'000; ++i) keep.push_back("m/" + std::to_string(i) + std::string(4'000, 'n'));
  auto client = connect();
  const auto pruned = wait(client->prune("set", keep));
  if (!pruned) FAIL(pruned.error().summary());
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(file("set")))
    left.insert(entry.path().string().substr(file("set").size() + 1));
  CHECK(left == std::set<std::string>{"a", "m", "m/x", "z"});
  REQUIRE(wait(client->remove("set")).ok());
  CHECK_FALSE(std::filesystem::exists(file("set")));
}

TEST_CASE_METHOD(HostilePull, "what a machine says of a pull is what was asked for, or refused") {
  const std::string sound = R"("size":105000,"moved":0,"version":"\"v1\"","sha256":")" + sha() + "\"";
  for (const std::string& said :
       {std::string("{}"), std::string(R"({"size":105000})"), "{" + sound + R"(,"moved":-1})",
        "{" + sound + R"(,"moved":1e18})", "{" + sound + R"(,"size":104999})", "{" + sound + R"(,"size":-1})",
        "{" + sound + R"(,"version":"\"v2\""})", "{" + sound + R"(,"sha256":"../../x"})",
        "{" + sound + R"(,"sha256":")" + sha256_hex("other") + "\"}"}) {
    INFO(said);
    request.sha256 = sha();
    auto client = meet("status:" + said);
    const auto pulled = wait(client->pull(request, always("http://127.0.0.1:1/")));
    REQUIRE_FALSE(pulled.ok());
    CHECK(pulled.error().code == broken_protocol);
    CHECK(wait(client->wait_broken()).error().code == broken_protocol);
  }
  CHECK(wait(meet("status:{" + sound + "}")->pull(request, always("http://127.0.0.1:1/"))).ok());
  for (const char* lie : {R"(event:{"event":"progress","value":{"done_bytes":-1}})",
                          R"(event:{"event":"progress","value":{"done_bytes":1,"total_bytes":9e18}})", "long"}) {
    INFO(lie);
    const auto pulled = wait(meet(lie)->pull(request, always("http://127.0.0.1:1/")));
    REQUIRE_FALSE(pulled.ok());
    CHECK(pulled.error().code == broken_protocol);
  }
}
