// How long providers are waited for that are asked for offers: on a virtual clock, so each limit is met exactly.
#include "runtime/workflow/lease/ask.hpp"

#include <catch2/catch.hpp>

#include "runtime/core/loop/virtual_time.hpp"
#include "tests/unit/lease/cloud.hpp"
#include "tests/unit/lease/seller.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;

namespace {

constexpr std::int64_t never = -1;

// Answers after that time.
class Slow final : public Seller {
 public:
  Slow(Loop& loop, std::string name, std::int64_t ms, std::string gpu)
      : Seller(std::move(name), std::move(gpu)), loop_(loop), ms_(ms) {}

  int under_way = 0;

 private:
  Async<> ready(CancelToken token) override {
    ++under_way;
    Result<> slept = co_await sleep_for(loop_, ms_ == never ? 3'600'000 : ms_, token);
    --under_way;
    co_return slept;
  }

  Loop& loop_;
  std::int64_t ms_;
};

struct Market {
  VirtualTime time;
  std::unique_ptr<Loop> loop = Loop::create_virtual(time).value();
  std::shared_ptr<store::Db> disk = store::Journal::make_disk().value();
  std::unique_ptr<store::Journal> journal = store::Journal::in_memory(*loop, disk);
  provider::Registry registry;
  Manager manager{*loop, *journal, registry, "0123456789ab"};
  std::map<std::string, Slow*> all;
  provider::OfferQuery query;

  void add(const std::string& name, std::int64_t ms, const std::string& gpu = "A100") {
    auto owned = std::make_unique<Slow>(*loop, name, ms, gpu);
    all[name] = owned.get();
    REQUIRE(registry.add(std::move(owned)));
  }
  // Its rows by provider: "" for offers, else the error.
  std::map<std::string, std::string> ask(Patience patience = {}) {
    const std::int64_t began_ns = time.monotonic_ns();
    std::map<std::string, std::string> out;
    const auto answers = run_blocking(*loop, ask_providers(*loop, registry, query, patience, {})).value();
    for (const auto& one : answers) {
      out[one.provider] = one.offers ? "" : one.offers.error().message;
      CHECK(all[one.provider]->under_way == 0);
    }
    took_ms = (time.monotonic_ns() - began_ns) / 1'000'000;
    return out;
  }
  std::int64_t took_ms = 0;
};

}  // namespace

TEST_CASE("a provider that hangs is left behind once another has offers, and its question ends") {
  Market m;
  m.add("quick", 1'000);
  m.add("steady", 9'000);
  m.add("hung", never);
  const auto rows = m.ask();
  CHECK(rows.at("quick").empty());
  CHECK(rows.at("steady").empty());
  CHECK(rows.at("hung") == "no answer within 10s");
  CHECK(m.took_ms == 10'000);
}

TEST_CASE("the slower the first provider, the longer the others are waited for") {
  Market m;
  m.add("first", 4'000);
  m.add("second", 15'000);
  m.add("hung", never);
  const auto rows = m.ask();
  CHECK(rows.at("second").empty());
  CHECK(rows.at("hung") == "no answer within 16s");
  CHECK(m.took_ms == 16'000);
}

TEST_CASE("a provider has its whole time where no other cloud has anything that fits") {
  Market m;
  m.query.gpu = "A100";
  m.add("local", 0);  // this machine's own is no reason to leave a cloud behind
  m.add("other", 100, "T4");
  m.add("late", 29'000);
  CHECK(m.ask().at("late").empty());
  CHECK(m.took_ms == 29'000);
  Market alone;
  alone.add("hung", never);
  CHECK(alone.ask().at("hung").find("took longer than 30s") != std::string::npos);
}

TEST_CASE("a provider that the user names is waited for in full, one that the caller adds is not") {
  Market m;
  m.add("quick", 1);
  m.add("late", 29'000);
  m.query.providers = {"quick", "late"};
  CHECK(m.ask().at("late").empty());
  Patience all_the_same;
  all_the_same.named = false;
  CHECK(m.ask(all_the_same).at("late") == "no answer within 10s");
  m.query.providers = {"late"};
  all_the_same.others_have_some = true;
  CHECK(m.ask(all_the_same).at("late") == "no answer within 10s");
  CHECK(m.took_ms == 10'000);
}

TEST_CASE("a given timeout applies to each provider") {
  Market m;
  m.add("quick", 1);
  m.add("late", 12'000);
  Patience told;
  told.timeout_ms = 3'000;
  CHECK(m.ask(told).at("late").find("took longer than 3") != std::string::npos);
  CHECK(m.took_ms == 3'000);
  const Value rows = run_blocking(*m.loop, m.manager.queries().offers(Value().set("timeout", "5s"), {})).value();
  REQUIRE(rows.as_array()->size() == 2);
  CHECK((*rows.as_array())[1].text("error").find("took longer than 5") != std::string::npos);
  const auto wrong = run_blocking(*m.loop, m.manager.queries().offers(Value().set("timeout", "soon"), {}));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("timeout") != std::string::npos);
}

TEST_CASE("a rent that names no provider does not wait for one that hangs, and one that names it does") {
  Market m;
  m.add("quick", 1'000);
  m.add("hung", never);
  const auto rent = [&m](const char* name, Value options) {
    const std::int64_t began_ns = m.time.monotonic_ns();
    Acquire a;
    a.key = std::string("main/") + name + "#1";
    a.name = name;
    a.options = std::move(options);
    a.fence = store::Fence("r", 1);
    Manager::Event quiet = [](const std::string&, Value) {};
    const auto got = run_blocking(*m.loop, m.manager.acquire(std::move(a), quiet, {}));
    return std::pair(got ? got->provider : got.error().message, (m.time.monotonic_ns() - began_ns) / 1'000'000);
  };
  const auto put = [](store::Db& db) {
    return db.script(
        "INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid) "
        "VALUES('r','t','durable','running',1,'{}',0,0,'h',1)");
  };
  REQUIRE(run_blocking(*m.loop, m.journal->commit(put)));
  const auto any = rent("any", Value().set("ttl", "1h"));
  CHECK(any.first == "quick");
  CHECK(any.second == 10'000);
  const auto named = rent("named", Value().set("ttl", "1h").set("provider", "hung"));
  CHECK(named.first.find("took longer than 30s") != std::string::npos);
  CHECK(named.second >= 30'000);
}
