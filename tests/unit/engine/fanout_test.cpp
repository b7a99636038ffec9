// Who asks whom for an object, what all are told, and what is noticed. The agents only note what they are told.
#include "runtime/workflow/engine/fanout.hpp"

#include <catch2/catch.hpp>

#include "runtime/core/base/id.hpp"

using namespace rille;
using namespace rille::engine;

namespace {

class NotingAgent final : public agent::AgentClient {
 public:
  bool broken() const override { return gone; }
  Async<> listen(agent::ShareHandlers told, CancelToken token) override {
    if (!knows) co_return make_error(ErrorKind::invalid, "the agent does not know the request 'listen'");
    handlers = std::move(told);
    handlers.listening(addresses);
    co_return co_await sleep_for(loop, 3'600'000, std::move(token));
  }
  void tell_digests(const std::string& share, const std::string& digests, bool disputed) override {
    heard.push_back({share, digests, disputed});
  }
  struct Heard {
    std::string share, digests;
    bool disputed;
  };
  explicit NotingAgent(Loop& l, std::string address) : loop(l), addresses{std::move(address)} {}
  Loop& loop;
  bool gone = false, knows = true;
  std::vector<std::string> addresses;
  agent::ShareHandlers handlers;
  std::vector<Heard> heard;
};

struct FanoutWorld {
  std::unique_ptr<Loop> loop = Loop::create().value();
  std::vector<std::string> warnings;
  std::map<std::string, std::shared_ptr<NotingAgent>> agents;
  Fanout::Wanted wanted;
  std::unique_ptr<Fanout> fanout =
      std::make_unique<Fanout>(*loop, [this](const std::string& said) { warnings.push_back(said); });

  FanoutWorld() {
    wanted.group = "aws\neu\ngang", wanted.source = "source", wanted.shown = "s3://b/x";
    wanted.version = "\"v1\"", wanted.size_bytes = 35, wanted.part_bytes = 10;
  }
  NotingAgent& agent(const std::string& lease) {
    auto& one = agents[lease];
    if (!one) one = std::make_shared<NotingAgent>(*loop, lease + ":4711");
    return *one;
  }
  Fanout::Wanted of(const std::string& lease) {
    agent(lease);
    Fanout::Wanted out = wanted;
    out.lease = lease, out.name = lease, out.agent = agents[lease];
    return out;
  }
  std::optional<agent::PullShare> join(const std::string& lease, bool again = false) {
    auto joined = run_blocking(*loop, fanout->join(of(lease), again, {}));
    REQUIRE(joined);
    return std::move(*joined);
  }
  // The machines that the lease asks, in order.
  std::string asks(const std::string& lease) {
    const auto share = join(lease);
    if (!share) return "alone";
    std::string out;
    for (const auto& machine : share->machines) out += machine.at(0).substr(0, machine[0].find(':')) + " ";
    return out;
  }
  static agent::Pulled pulled(const std::string& content) {
    agent::Pulled out;
    out.size_bytes = 35, out.version = "\"v1\"", out.sha256 = sha256_hex(content);
    return out;
  }
};

std::string digest_text(const std::string& bytes) { return sha256_hex(bytes); }

}  // namespace

TEST_CASE_METHOD(FanoutWorld, "machines ask along a tree, in the order in which they came") {
  CHECK(asks("a") == "");
  CHECK(asks("b") == "a ");
  CHECK(asks("c") == "a b ");  // the second asks the server, if the first is gone
  CHECK(asks("d") == "b a ");
  CHECK(asks("e") == "b a ");
  CHECK(asks("f") == "c a b ");
  CHECK(asks("g") == "c a b ");
  CHECK(asks("h") == "d b a ");
  CHECK(join("h")->id == join("a")->id);
  CHECK(asks("d") == "b a ");  // another pull of it

  agents["b"]->gone = true;
  CHECK(asks("i") == "e c a ");  // of a c d e f g h: place 7 asks 3, 1, 0
  CHECK(asks("d") == "a c ");
  agents["b"] = nullptr;  // its lease has another machine
  CHECK(asks("b") == "e c a ");
}

TEST_CASE_METHOD(FanoutWorld, "only machines of one group are told of each other, and only of the same object") {
  CHECK(asks("a") == "");
  wanted.group = "aws\nus\ngang";
  CHECK(asks("b") == "");
  wanted.group = "aws\neu\ngang";
  wanted.version = "\"v2\"";
  CHECK(asks("c") == "");
  wanted.version = "\"v1\"";
  wanted.source = "other";
  CHECK(asks("d") == "");
  wanted.source = "source";
  CHECK(asks("e") == "a ");
  agent("old").knows = false;
  CHECK(asks("old") == "alone");
  agent("public").addresses.clear();
  CHECK(asks("public") == "alone");
  CHECK(asks("f") == "a e ");
  wanted.size_bytes = 0;
  CHECK(asks("g") == "alone");
}

TEST_CASE_METHOD(FanoutWorld, "a failed pull is asked for nothing, a finished one is, also later") {
  CHECK(asks("a") == "");
  CHECK(asks("b") == "a ");
  CHECK(fanout->leave(of("a"), make_error(ErrorKind::quota, "no room")).ok());
  CHECK(asks("c") == "b ");
  CHECK(fanout->leave(of("b"), pulled("x")).ok());
  CHECK(fanout->leave(of("c"), pulled("x")).ok());
  CHECK(asks("d") == "b c ");
  CHECK(join("d", true)->machines.size() == 2);
  CHECK(fanout->leave(of("d"), make_error(ErrorKind::network, "")).ok());
  CHECK(asks("e") == "b c ");
}

TEST_CASE_METHOD(FanoutWorld, "the first digest of a part is told to all that fetch; another one ends the share") {
  const std::string id = join("a")->id;
  (void)join("b"), (void)join("c"), (void)join("done");
  CHECK(fanout->leave(of("done"), pulled("x")).ok());
  agent("a").handlers.digest(id, 3, digest_text("part"));
  agent("a").handlers.digest(id, 4, digest_text("beyond the end"));
  agent("a").handlers.digest("unknown", 0, digest_text("part"));
  REQUIRE(agent("b").heard.size() == 1);
  CHECK(agent("b").heard[0].share == id);
  CHECK(agent::digests_from(agent("b").heard[0].digests)->at(3) == agent::digests_from(join("e")->digests)->at(3));
  CHECK(agent("c").heard.size() == 1);
  CHECK(agent("a").heard.empty());
  CHECK(agent("done").heard.empty());
  agent("b").handlers.digest(id, 3, digest_text("part"));
  CHECK(warnings.empty());

  wanted.source = "other";
  const std::string other = join("stranger")->id;
  agent("a").handlers.digest(other, 0, digest_text("of what it has not joined"));
  CHECK(join("stranger")->digests.empty());
  wanted.source = "source";

  agent("c").handlers.digest(id, 3, digest_text("lie"));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("s3://b/x") != std::string::npos);
  CHECK(agent("b").heard.back().disputed);
  CHECK(agent("c").heard.back().disputed);
  CHECK(asks("f") == "alone");
}

TEST_CASE_METHOD(FanoutWorld, "machines that end with different bytes are an error; given lies are a warning") {
  (void)join("a"), (void)join("b"), (void)join("c");
  CHECK(fanout->leave(of("a"), pulled("x")).ok());
  agent::Pulled lied_to = pulled("x");
  lied_to.liars = {0};
  CHECK(fanout->leave(of("b"), lied_to).ok());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("'b'") != std::string::npos);
  const auto differs = fanout->leave(of("c"), pulled("y"));
  REQUIRE_FALSE(differs.ok());
  CHECK(differs.error().kind == ErrorKind::integrity);
  CHECK(differs.error().message.find("'c'") != std::string::npos);
  CHECK(warnings.size() == 2);
}

TEST_CASE_METHOD(FanoutWorld, "of an address on the web, the first machine tells what it is, while it fetches") {
  wanted.version.clear(), wanted.size_bytes = -1;
  const std::string id = join("a")->id;
  std::optional<std::optional<agent::PullShare>> second;
  auto begin = [](FanoutWorld& w, std::optional<std::optional<agent::PullShare>>& out) -> Task<void> {
    auto joined = co_await w.fanout->join(w.of("b"), false, {});
    if (joined) out.emplace(std::move(*joined));
  };
  loop->spawn(begin(*this, second));
  bool turned = false;
  loop->post([&] { turned = true; });
  loop->run_until([&] { return turned; });
  CHECK_FALSE(second);
  agent("a").handlers.object(id, 35, "\"v1\"");
  loop->run_until([&] { return second.has_value(); });
  REQUIRE(*second);
  CHECK((*second)->size_bytes == 35);
  CHECK((*second)->version == "\"v1\"");
  CHECK((*second)->machines.size() == 1);
  CHECK(join("a", true)->version.empty());
  CHECK(fanout->leave(of("a"), pulled("x")).ok());
  CHECK(fanout->leave(of("b"), pulled("x")).ok());
  CHECK(asks("c") == "");  // it may have changed by now
  CHECK(join("c")->id != id);
  wanted.sha256 = sha256_hex("x");  // with this it cannot
  (void)join("d");
  CHECK(fanout->leave(of("d"), pulled("x")).ok());
  CHECK(asks("e") == "d ");
}
