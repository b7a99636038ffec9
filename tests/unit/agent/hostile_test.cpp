// A machine that lies (tests/support/hostile_agent.py): nothing is written outside of the target folder, the runner
// does not end, and one error says what is wrong.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>

#include "runtime/core/store/beneath.hpp"
#include "runtime/workflow/agent/frame.hpp"
#include "tests/unit/agent/fixture.hpp"

using namespace rille;
using namespace rille::agent;
namespace fs = std::filesystem;

namespace {

struct HostileFixture : AgentFixture {
  std::string target = temp.file("outer/target");

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

  // The names of all that is below the fixture's folder, but for the target's own.
  std::string outside() {
    std::string names;
    for (const auto& entry : fs::recursive_directory_iterator(temp.file("outer")))
      if (!entry.path().string().starts_with(target)) names += entry.path().string() + " ";
    return names;
  }
};

}  // namespace

TEST_CASE_METHOD(HostileFixture, "what a machine lists is written beneath the target, or refused") {
  fs::create_directories(target);
  fs::create_directories(temp.file("elsewhere"));
  fs::create_directory_symlink(temp.file("elsewhere"), target + "/link");
  CHECK(wait(meet("honest")->get("loot", target)).value().files == 2);
  CHECK(read(target + "/sub/b") == "stolen");
  for (const char* lie : {"up", "absolute", "inner_up", "directory_up", "dot", "empty", "zero", "negative", "huge",
                          "digest", "no_digest", "twice", "long", "through_link"}) {
    INFO(lie);
    const auto got = wait(meet(lie)->get("loot", target));
    REQUIRE_FALSE(got.ok());
    CHECK(got.error().kind == ErrorKind::integrity);
    CHECK(outside().empty());
  }
  CHECK(fs::is_empty(temp.file("elsewhere")));
  CHECK_FALSE(fs::exists("/tmp/rille-escaped"));
}

TEST_CASE_METHOD(HostileFixture, "files are fetched as far as there is room for them") {
  std::int64_t left_bytes = 8;
  const Room room = [&](std::int64_t bytes) -> Result<> {
    if (bytes > left_bytes) return make_error(ErrorKind::quota, "full");
    left_bytes -= bytes;
    return success();
  };
  const auto got = wait(meet("honest")->get("loot", target, {}, {}, room));
  REQUIRE_FALSE(got.ok());
  CHECK(got.error().kind == ErrorKind::quota);
  CHECK(left_bytes == 2);
  CHECK(fs::exists(target + "/a"));
  CHECK_FALSE(fs::exists(target + "/sub/b"));
  left_bytes = 6;
  CHECK(wait(meet("honest")->get("loot", target, {}, {}, room)).ok());  // what is there already takes no room
  CHECK(left_bytes == 0);
}

TEST_CASE_METHOD(HostileFixture, "a machine chooses no set-user-id bit") {
  CHECK(wait(meet("mode")->get("loot", target)).ok());
  struct stat st {};
  REQUIRE(::stat((target + "/a").c_str(), &st) == 0);
  CHECK((st.st_mode & 07000) == 0);
}

TEST_CASE_METHOD(HostileFixture, "a machine chooses no place in a file that is sent beyond its end") {
  write(temp.file("sent"), "bytes");
  CHECK(wait(meet("honest")->put(temp.file("sent"), "work")).ok());
  for (const char* lie : {"offset", "negative_offset"}) {
    INFO(lie);
    const auto put = wait(meet(lie)->put(temp.file("sent"), "work"));
    REQUIRE_FALSE(put.ok());
    CHECK(put.error().kind == ErrorKind::integrity);
  }
}

TEST_CASE_METHOD(HostileFixture, "what no agent sends is one integrity error; a cut connection is a network error") {
  for (const char* lie : {"frame:0", "frame:1", "frame:2", "frame:9", "frame:255"}) {
    INFO(lie);
    auto client = meet(lie);
    const auto told = wait(client->describe());
    REQUIRE_FALSE(told.ok());
    CHECK(told.error().kind == ErrorKind::integrity);
    CHECK(told.error().code == broken_protocol);
    CHECK_FALSE(told.error().retryable);
    CHECK(client->broken());
    CHECK(wait(client->wait_broken()).error().kind == ErrorKind::integrity);
  }
  const auto cut = wait(meet("cut")->describe());
  REQUIRE_FALSE(cut.ok());
  CHECK(cut.error().kind == ErrorKind::network);
  CHECK(cut.error().retryable);
}

TEST_CASE_METHOD(HostileFixture, "what a machine says of a call is in range, or refused") {
  const std::string done = R"("state":"done","attempt":1,"outcome":{"value":7})";
  for (const std::string& said :
       {std::string(R"({"state":"dancing"})"), std::string(R"({"state":"running"})"), std::string("{}"),
        std::string(R"({"state":"running","attempt":-1})"), std::string(R"({"state":"running","attempt":1e12})"),
        std::string(R"({"state":"running","attempt":"1"})"), std::string(R"({"state":"done","attempt":1})"),
        "{" + done + R"(,"idle_attempts":2})", "{" + done + R"(,"idle_attempts":-1})",
        "{" + done + R"(,"log_size_bytes":-1})", "{" + done + R"(,"log_size_bytes":1e18})",
        "{" + done + R"(,"checkpoint":"x"})", "{" + done + R"(,"checkpoint":{"step":-1}})",
        "{" + done + R"(,"checkpoint":{"step":1e300}})", "{" + done + R"(,"checkpoint":{"directory":7}})"}) {
    INFO(said);
    auto client = meet("status:" + said);
    const auto status = wait(client->status("k"));
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().kind == ErrorKind::integrity);
    CHECK(status.error().code == broken_protocol);
    CHECK(wait(client->wait_broken()).error().code == broken_protocol);
  }
  CHECK(wait(meet("status:{" + done + R"(,"checkpoint":{"step":3},"idle_attempts":1})")->status("k")).ok());
}

TEST_CASE_METHOD(HostileFixture, "what a machine says while a call runs is in range, or refused") {
  AttachHandlers handlers;
  handlers.log = [](std::string_view, std::int64_t) {};
  handlers.progress = handlers.checkpoint = [](const Value&) {};
  handlers.notice = [](std::int64_t) {};
  handlers.metrics = [](std::string_view, std::int64_t) {};
  for (const char* lie :
       {R"(event:{"event":"log","offset":-1})", R"(event:{"event":"log","offset":9e18})",
        R"(event:{"event":"metrics","offset":-1})", R"(event:{"event":"metrics","offset":9e18})",
        R"(event:{"event":"notice","deadline_wall_us":-1})", R"(event:{"event":"notice","deadline_wall_us":9e18})",
        R"(event:{"event":"checkpoint","value":[1]})", R"(event:{"event":"checkpoint","value":{"step":-5}})",
        R"(event:{"event":"checkpoint","value":{"step":5,"share":7}})",
        R"(event:{"event":"checkpoint","value":{"step":5,"share":{"training":7}}})", "long"}) {
    INFO(lie);
    const auto attached = wait(meet(lie)->attach("k", 0, handlers));
    REQUIRE_FALSE(attached.ok());
    CHECK(attached.error().code == broken_protocol);
  }
  for (const char* said :
       {R"(event:{"event":"of a newer agent"})", R"(event:{"event":"checkpoint","value":{"step":5}})"})
    CHECK(wait(meet(said)->attach("k", 0, handlers)).ok());
  for (const auto& [field, most] : {std::pair("training", 64), {"manifest", 256}, {"directory", 4096}})
    for (const int size : {most, most + 1}) {
      INFO(field << " " << size);
      const std::string share = fmt::format(R"({{"rank":0,"world":2,"{}":"{}"}})", field, std::string(size, 'a'));
      const auto attached = wait(
          meet(R"(event:{"event":"checkpoint","value":{"step":5,"share":)" + share + "}}")->attach("k", 0, handlers));
      CHECK(attached.ok() == (size == most));
      if (!attached.ok()) CHECK(attached.error().code == broken_protocol);
    }
}

// RILLE_SEEDS: how many sessions of random lies.
TEST_CASE_METHOD(HostileFixture, "no lie ends the runner or leaves the target") {
  const char* seeds = std::getenv("RILLE_SEEDS");
  const int count = seeds ? std::atoi(seeds) : 12;  // fuzz.agent_sessions tells many more lies
  fs::create_directories(target);
  fs::create_directories(temp.file("elsewhere"));
  fs::create_directory_symlink(temp.file("elsewhere"), target + "/link");
  for (int seed = 1; seed <= count; ++seed) {
    INFO("seed " << seed);
    auto client = meet(std::to_string(seed));
    CancelSource enough;
    Timer limit(*loop, 1000, [&] { enough.cancel(make_error(ErrorKind::timeout, "an answer that never comes")); });
    (void)wait(client->get("loot", target, {}, enough.token()));
    (void)wait(client->list("loot", enough.token()));
    (void)wait(client->describe(enough.token()));
    (void)wait(client->status("main/x#1", enough.token()));
    PullRequest wanted;
    wanted.path = wanted.key = "loot";
    PullSign sign = [](CancelToken) -> Async<PullAddress> { co_return PullAddress{}; };
    (void)wait(client->pull(wanted, sign, {}, enough.token()));
    (void)wait(client->prune("loot", {"a"}, enough.token()));
    CHECK(outside().empty());
    CHECK(fs::is_empty(temp.file("elsewhere")));
  }
}

TEST_CASE("names that lead out of a folder") {
  for (const std::string& bad :
       {std::string(), std::string("/a"), std::string(".."), std::string("a/.."), std::string("a//b"),
        std::string("a/"), std::string("./a"), std::string("a\0b", 3), std::string(300, 'x'), std::string(5000, 'x')})
    CHECK(store::check_relative(bad).error().kind == ErrorKind::integrity);
  for (const char* good : {"a", "a/b", "a..b", "...", ".hidden", "a b", "ü"}) CHECK(store::check_relative(good).ok());
}

TEST_CASE_METHOD(HostileFixture, "an answer to unpack that says nothing is a lie") {
  const auto got = wait(meet("honest")->unpack("a.tar", "data"));
  REQUIRE_FALSE(got.ok());
  CHECK(got.error().code == broken_protocol);
}
