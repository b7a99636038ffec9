// Which runners an agent obeys: those with the token of the first one, and of these the newest.
#include "runtime/workflow/agent/admission.hpp"

#include <sys/stat.h>

#include "runtime/core/base/id.hpp"
#include "runtime/workflow/agent/connection.hpp"
#include "tests/unit/agent/fixture.hpp"

using namespace rille;
using namespace rille::agent;
namespace fs = std::filesystem;

namespace {

struct AdmissionFixture : AgentFixture {
  // The agent's answer to a hello that is sent directly to its socket: its hello, or its error.
  Result<Frame> greet(const Value::Object& more, std::shared_ptr<Connection>* kept = nullptr) {
    auto stream = wait(Stream::connect_unix(*loop, directory + "/agent.sock"));
    auto peer = Connection::over(*loop, std::move(stream).value());
    Frame hello;
    hello.type = FrameType::hello;
    hello.header = more;
    hello.header.set("protocol", protocol_version);
    REQUIRE(peer->post(std::move(hello)).ok());
    Result<Frame> answer = wait(peer->receive());
    if (kept) *kept = peer;
    else peer->close(make_error(ErrorKind::cancelled, "end"));
    return answer;
  }
  void kill_agent(AgentClient& client) {
    kill(static_cast<pid_t>(client.info().pid), SIGKILL);
    (void)wait(client.wait_broken());
  }
  std::string fence() const { return read(directory + "/fence.json"); }
};

}  // namespace

TEST_CASE_METHOD(AdmissionFixture, "an agent obeys the token of its first runner only, also after a restart") {
  auto client = connect();
  REQUIRE(wait(client->start(request("k", hold()))).ok());
  const std::string before = fence();
  const std::int64_t huge = std::int64_t{1} << 53;
  auto strangers_are_refused = [&] {
    for (const std::string& other : {std::string(), std::string("a"), std::string(64, 'b'), std::string(63, 'a'),
                                     std::string(65, 'a'), std::string(4096, 'a')}) {
      INFO(other.size());
      const auto answer = greet({{"token", other}, {"epoch", huge}, {"generation", huge}});
      REQUIRE_FALSE(answer.ok());
      CHECK(answer.error().kind == ErrorKind::auth);
      CHECK(answer.error().code == "agent_token");
    }
    CHECK(greet({}).error().kind == ErrorKind::auth);
    CHECK(fence() == before);
  };
  strangers_are_refused();
  CHECK(wait(client->status("k"))->state == CallState::running);
  kill_agent(*client);
  client = connect();
  strangers_are_refused();
  token = std::string(64, 'c');
  CHECK(try_connect().error().code == "agent_token");
}

TEST_CASE_METHOD(AdmissionFixture, "what a connection without a token sends after its hello is not heard") {
  auto client = connect();
  std::shared_ptr<Connection> peer;
  CHECK_FALSE(greet({{"token", std::string(64, 'b')}}, &peer).ok());
  (void)peer->post(Frame{FrameType::request, Value::Object{{"id", 1}, {"op", "shutdown"}}, ""});
  CHECK_FALSE(wait(peer->receive()).ok());
  CHECK(wait(client->describe()).ok());
}

TEST_CASE_METHOD(AdmissionFixture, "the token is in no file, no argument and no environment") {
  token = random_hex(32);
  auto client = connect();
  REQUIRE(wait(client->start(request("k", hold()))).ok());
  REQUIRE(eventually([&] { return wait(client->status("k"))->progress.number("pid") > 0; }));
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) CHECK(read(entry.path()).find(token) == std::string::npos);
  const std::vector<pid_t> all = processes();
  CHECK_FALSE(all.empty());
  for (pid_t pid : all)
    for (const char* what : {"/cmdline", "/environ"})
      CHECK(read("/proc/" + std::to_string(pid) + what).find(token) == std::string::npos);
  struct stat st {};
  REQUIRE(::stat((directory + "/fence.json").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  CHECK(fence().find(sha256_hex(token)) != std::string::npos);
}

TEST_CASE_METHOD(AdmissionFixture, "an instance of an older build takes the first token that comes") {
  write(directory + "/fence.json", R"({"epoch":3,"generation":1})");
  CHECK(try_connect().error().code == "fenced");
  CHECK(fence().find("token") == std::string::npos);
  epoch = 3;
  auto client = connect();
  CHECK(wait(client->start(request("k", R"({"do":"lines","count":1})", 3))).ok());
  token = std::string(64, 'b');
  CHECK(try_connect().error().kind == ErrorKind::auth);
}

TEST_CASE_METHOD(AdmissionFixture, "with a damaged fence every runner is refused, and the file stays") {
  for (const char* text :
       {"", "{", "7", "{}", R"({"epoch":3})", R"({"epoch":-1,"generation":1})", R"({"epoch":1e15,"generation":1})",
        R"({"epoch":"3","generation":1})", R"({"epoch":3,"generation":1,"token_sha256":""})",
        R"({"epoch":3,"generation":1,"token_sha256":7})", R"({"epoch":3,"generation":1,"token_sha256":"ffe0"})"}) {
    INFO(text);
    write(directory + "/fence.json", text);
    const Result<> loaded = Admission(directory).load();
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().kind == ErrorKind::integrity);
    CHECK(fence() == text);
  }
}

TEST_CASE_METHOD(AdmissionFixture, "a runner that a newer one has replaced may look, but changes nothing") {
  auto old = connect();
  REQUIRE(wait(old->start(request("k", hold()))).ok());
  REQUIRE(wait(old->start(request("done", R"({"do":"lines","count":1})"))).ok());
  REQUIRE(wait(old->attach("done", 0, {})).ok());
  write(temp.file("in"), "x");
  REQUIRE(wait(old->put(temp.file("in"), "a")).ok());
  epoch = 2;
  auto newer = connect();
  auto is_fenced = [](const auto& answer) {
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.error().kind == ErrorKind::state);
    CHECK(answer.error().message.find("epoch 1") != std::string::npos);
  };
  is_fenced(wait(old->cancel("k", "old", 0)));
  is_fenced(wait(old->preempt("k", std::int64_t{1} << 60, true)));
  is_fenced(wait(old->forget({"k", "done"}, "old")));
  is_fenced(wait(old->acknowledge("done")));
  is_fenced(wait(old->start(request("other", hold()))));
  is_fenced(wait(old->put(temp.file("in"), "b")));
  is_fenced(wait(old->shutdown()));
  CHECK(wait(old->status("k"))->state == CallState::running);
  CHECK(wait(old->status("done"))->state == CallState::done);
  CHECK(wait(old->get("a", temp.file("out"))).ok());
  CHECK(wait(old->describe()).ok());
  CHECK_FALSE(fs::exists(directory + "/work/b"));
  epoch = 1;
  CHECK(try_connect().error().code == "fenced");
  kill_agent(*newer);
  CHECK(try_connect().error().code == "fenced");
  epoch = 2;
  newer = connect();
  CHECK(wait(newer->acknowledge("done")).ok());
}

TEST_CASE_METHOD(AdmissionFixture, "an epoch is a number that a run can have") {
  auto client = connect();
  for (std::int64_t bad : {std::int64_t{-1}, std::int64_t{1} << 53}) {
    CHECK(greet({{"token", token}, {"epoch", bad}}).error().kind == ErrorKind::invalid);
    CHECK(greet({{"token", token}, {"epoch", 1}, {"generation", bad}}).error().kind == ErrorKind::invalid);
    CHECK(wait(client->start(request("k", hold(), bad))).error().kind == ErrorKind::invalid);
    CHECK(wait(client->start(request("k", hold(), 1, bad))).error().kind == ErrorKind::invalid);
  }
  CHECK(wait(client->start(request("k", hold()))).ok());
}

// Without it a runner could not free the disk that it has filled.
TEST_CASE_METHOD(AdmissionFixture, "a fence that cannot be written refuses calls, but not the runner") {
  auto client = connect();
  fs::remove(directory + "/fence.json");
  fs::create_directories(directory + "/fence.json/in/the/way");
  epoch = 2;
  auto newer = connect();
  CHECK(wait(newer->describe()).ok());
  CHECK(wait(client->forget({"k"}, "old")).error().kind == ErrorKind::state);
  CHECK(wait(newer->start(request("k", hold(), 2))).error().kind == ErrorKind::io);
  CHECK(wait(newer->status("k"))->state == CallState::absent);
  fs::remove_all(directory + "/fence.json");
  CHECK(wait(newer->start(request("k", hold(), 2))).ok());
  CHECK(Value::from_json(fence())->integer("epoch") == 2);
}
