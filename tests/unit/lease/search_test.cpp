// Rents that want the same at the same moment ask once.
#include "tests/unit/lease/cloud.hpp"
#include "tests/unit/lease/seller.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;

namespace {

// Answers when the test says so.
class Counter final : public Seller {
 public:
  explicit Counter(Loop& loop) : Seller("counter"), loop_(loop) {}

  std::vector<Future<Result<>>> asking;
  int asked = 0;

 private:
  Async<> ready(CancelToken token) override {
    ++asked;
    Future<Result<>> open(loop_);
    asking.push_back(open);
    auto registration = token.on_cancel([open](const Error& why) { open.set(why); });
    co_return co_await open;
  }

  Loop& loop_;
};

struct Queue {
  World w;
  provider::Registry registry;
  Counter* counter = nullptr;
  std::unique_ptr<Manager> manager;
  std::vector<Result<Lease>> results;

  Queue() {
    auto owned = std::make_unique<Counter>(*w.loop);
    counter = owned.get();
    (void)registry.add(std::move(owned));
    manager = std::make_unique<Manager>(*w.loop, *w.journal, registry, "0123456789ab");
    w.run("r");
  }
  void rent(const std::string& name, Value options, CancelToken token = {}) {
    const auto one = [](Manager& m, Acquire a, CancelToken t, std::vector<Result<Lease>>& out) -> Task<void> {
      Manager::Event quiet = [](const std::string&, Value) {};
      auto r = co_await m.acquire(std::move(a), quiet, t);
      out.push_back(std::move(r));
    };
    w.loop->spawn(one(*manager, w.wanted("r", name, std::move(options)), token, results));
  }
  void until(std::size_t n) {
    w.loop->run_until([&] { return results.size() == n; });
  }
  void open(std::size_t i, Result<> with = success()) { counter->asking.at(i).set(std::move(with)); }
};

Value wish() { return Value().set("gpu", "cpu").set("ttl", "1h"); }

}  // namespace

TEST_CASE("simultaneous rents with the same query share one request, rents with another query do not") {
  Queue q;
  for (int i = 0; i < 5; ++i) q.rent("box" + std::to_string(i), wish());
  q.rent("longer", wish().set("ttl", "2h"));  // that is not for its provider
  q.rent("cheap", wish().set("max_price", 5));
  CHECK(q.counter->asked == 2);
  q.open(1);
  q.until(1);
  CHECK(q.results[0].value().name == "cheap");
  q.open(0);
  q.until(7);
  for (const auto& r : q.results) {
    REQUIRE(r.ok());
    CHECK(r->expires_us - r->created_us == (r->name == "longer" ? 2 : 1) * 3'600'000'000);
  }
  CHECK(q.counter->asked == 2);
  CHECK(q.counter->made == 7);
  q.rent("later", wish());  // no rent asks now: the last answer is outdated
  CHECK(q.counter->asked == 3);
  q.open(2);
  q.until(8);
}

TEST_CASE("of many that wait for the same answer the first have their machines while the last still choose") {
  Queue q;
  q.w.journal.reset();
  const std::shared_ptr<store::Db> disk = store::Journal::make_disk().value();
  q.w.journal = store::Journal::in_memory(*q.w.loop, disk);  // written in the loop's turns: nothing here is by chance
  q.manager = std::make_unique<Manager>(*q.w.loop, *q.w.journal, q.registry, "0123456789ab");
  q.w.run("r");
  constexpr int n = 1000;
  for (int i = 0; i < n; ++i) q.rent("box" + std::to_string(i), wish());
  q.open(0);
  q.w.loop->run_until([&] { return q.counter->made > 0; });
  int planned = 0;
  REQUIRE(disk->query("SELECT COUNT(*) FROM leases", {},
                      [&](const store::Row& row) { planned = static_cast<int>(row.integer(0)); })
              .ok());
  CHECK(planned > 0);
  CHECK(planned < n / 2);
  q.until(n);
  CHECK(q.counter->asked == 1);
  CHECK(q.counter->made == n);
}

TEST_CASE("where the one that asks is cancelled, the next asks, and what a provider refuses all hear") {
  Queue q;
  CancelSource first, second;
  q.rent("first", wish(), first.token());
  q.rent("second", wish(), second.token());
  q.rent("third", wish());
  q.rent("fourth", wish());
  second.cancel(make_error(ErrorKind::cancelled, "not this one"));
  q.until(1);
  CHECK(q.results[0].error().message == "not this one");
  CHECK(q.counter->asked == 1);
  first.cancel(make_error(ErrorKind::cancelled, "nor this"));
  q.until(2);
  CHECK(q.results[1].error().message == "nor this");
  q.w.loop->run_until([&] { return q.counter->asked == 2; });
  q.open(1, make_error(ErrorKind::auth, "the key is not known"));
  q.until(4);
  for (const std::size_t i : {2UL, 3UL}) CHECK(q.results[i].error().message == "the key is not known");
  CHECK(q.counter->asked == 2);
}

TEST_CASE("a process that ends while other rents wait for its request leaves nothing behind") {
  Queue q;
  q.rent("first", wish());
  q.rent("second", wish());
  q.w.loop->abandon_tasks();
  CHECK(q.counter->asked == 1);
  q.rent("third", wish());
  CHECK(q.counter->asked == 2);
  q.open(1);
  q.until(1);
  CHECK(q.results[0].ok());
}
