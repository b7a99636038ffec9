// A machine that lies (tests/support/hostile_agent.py): nothing is written outside of the target folder, the runner
// does not end, and one error says what is wrong.
#include <sys/stat.h>

#include <cstdlib>

#include "runtime/core/store/beneath.hpp"
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

// RILLE_SEEDS: how many sessions of random lies.
TEST_CASE_METHOD(HostileFixture, "no lie ends the runner or leaves the target") {
  const char* seeds = std::getenv("RILLE_SEEDS");
  const int count = seeds ? std::atoi(seeds) : 40;
  fs::create_directories(target);
  fs::create_directories(temp.file("elsewhere"));
  fs::create_directory_symlink(temp.file("elsewhere"), target + "/link");
  for (int seed = 1; seed <= count; ++seed) {
    INFO("seed " << seed);
    auto client = meet(std::to_string(seed));
    CancelSource enough;
    Timer limit(*loop, 2000, [&] { enough.cancel(make_error(ErrorKind::timeout, "an answer that never comes")); });
    (void)wait(client->get("loot", target, {}, enough.token()));
    (void)wait(client->list("loot", enough.token()));
    (void)wait(client->describe(enough.token()));
    (void)wait(client->status("main/x#1", enough.token()));
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
