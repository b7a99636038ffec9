// A machine that becomes another type is never left stopped, whatever fails on the way.
#include "runtime/workflow/provider/cloud/resize.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "runtime/core/loop/virtual_time.hpp"

using namespace rille;
using namespace rille::provider::cloud;

namespace {

// A machine whose calls are counted, and fail where the test says: with no effect, or although they took effect.
struct Scripted {
  VirtualTime time;
  std::unique_ptr<Loop> loop = Loop::create_virtual(time).value();
  Power power = Power::running;
  std::string type = "small";
  int calls = 0, stops = 0, fail_at = 0;
  bool takes_effect = false, never_starts = false;
  Error failure = make_error(ErrorKind::network, "connection reset by peer").with_retry();
  std::set<std::string> no_room;  // types that do not start

  Result<> meet(const CancelToken& token, const std::function<Result<>()>& effect) {
    const bool fails = ++calls == fail_at;
    if (token.cancelled()) return token.reason();
    if (fails && !takes_effect) return failure;
    RILLE_CHECK(effect());
    if (fails) return failure;
    return {};
  }
  static Error wrong_state() { return make_error(ErrorKind::state, "not in that state"); }

  Resizing to(const std::string& wanted) {
    Resizing how;
    how.type = wanted;
    how.look = [this](CancelToken token) -> Async<Standing> {
      RILLE_CO_CHECK(meet(token, [] { return success(); }));
      Standing now;
      now.power = power;
      now.type = type;
      co_return now;
    };
    how.stop = [this](CancelToken token) -> Async<> {
      co_return meet(token, [this]() -> Result<> {
        ++stops;
        if (power == Power::stopped) return {};
        power = Power::between;
        time.add(20'000, [this] { power = Power::stopped; });
        return {};
      });
    };
    how.change = [this](std::string other, CancelToken token) -> Async<> {
      co_return meet(token, [this, other]() -> Result<> {
        if (power != Power::stopped) return wrong_state();
        type = other;
        return {};
      });
    };
    how.start = [this](CancelToken token) -> Async<> {
      co_return meet(token, [this]() -> Result<> {
        if (power != Power::stopped) return wrong_state();
        if (never_starts) return make_error(ErrorKind::auth, "you may not start it");
        if (no_room.contains(type)) return make_error(ErrorKind::capacity, "no room for it");
        power = Power::between;
        time.add(10'000, [this] { power = Power::running; });
        return {};
      });
    };
    return how;
  }

  Result<> resize(CancelToken token = {}) {
    Resizing how = to("large");
    Result<> done = run_blocking(*loop, resize_stopped(*loop, std::move(how), std::move(token)));
    (void)run_blocking(*loop, sleep_for(*loop, 300'000, {}));  // what was asked for takes its time
    return done;
  }
};

}  // namespace

TEST_CASE("a machine stops, is changed and starts again; one that has the type is left alone") {
  Scripted s;
  REQUIRE(s.resize());
  CHECK(s.power == Power::running);
  CHECK(s.type == "large");
  const int calls = s.calls;
  REQUIRE(s.resize());
  CHECK(s.calls == calls + 1);
  CHECK(s.stops == 1);
}

TEST_CASE("a machine that still boots is not stopped: one that has the type never, another once it is up") {
  for (const char* type : {"large", "small"}) {
    Scripted s;
    s.type = type;
    s.power = Power::between;
    s.time.add(30'000, [&s] {
      CHECK(s.stops == 0);
      s.power = Power::running;
    });
    REQUIRE(s.resize());
    CHECK(s.power == Power::running);
    CHECK(s.type == "large");
    CHECK(s.stops == (s.type == type ? 0 : 1));
  }
}

TEST_CASE("a machine that is found going down is started again, whatever fails on the way") {
  for (const bool lost : {true, false})
    for (int n = 1; n <= 30; ++n) {
      Scripted s;
      s.power = Power::between;
      s.time.add(20'000, [&s] { s.power = Power::stopped; });
      s.fail_at = n;
      s.takes_effect = !lost;
      const Result<> done = s.resize();
      if (n == 1) continue;  // it was not even seen: the row keeps what it shall become
      INFO("call " << n);
      CHECK(s.power == Power::running);
      CHECK(done.ok() == (s.type == "large"));
    }
}

TEST_CASE("whichever call fails, the machine runs in the end, and success means the new type") {
  Scripted calm;
  REQUIRE(calm.resize());
  REQUIRE(calm.calls > 6);
  enum { lost_call, lost_answer, refused };
  for (const int how : {lost_call, lost_answer, refused})
    for (int n = 1; n <= calm.calls; ++n) {
      INFO("call " << n << (how == lost_answer ? ", whose answer is lost" : how == refused ? ", refused" : ""));
      Scripted s;
      s.fail_at = n;
      s.takes_effect = how == lost_answer;
      if (how == refused) s.failure = make_error(ErrorKind::invalid, "no such type here");
      const Result<> done = s.resize();
      CHECK(s.power == Power::running);
      CHECK(done.ok() == (s.type == "large"));
      if (!done) CHECK(done.error().message == s.failure.message);
    }
}

TEST_CASE("a type that has no room is given up for the one before") {
  Scripted s;
  s.no_room = {"large"};
  const Result<> done = s.resize();
  REQUIRE_FALSE(done);
  CHECK(done.error().kind == ErrorKind::capacity);
  CHECK(s.power == Power::running);
  CHECK(s.type == "small");
}

TEST_CASE("cancelled at any instant, it runs in the end") {
  int as_it_was = 0, changed = 0;
  for (std::int64_t at_ms = 0; at_ms < 30'000; at_ms += 500) {
    INFO("after " << at_ms << " ms");
    Scripted s;
    CancelSource source;
    s.time.add(at_ms, [&] { source.cancel(make_error(ErrorKind::cancelled, "no longer needed")); });
    const Result<> done = s.resize(source.token());
    CHECK(s.power == Power::running);
    CHECK(done.ok() == (s.type == "large"));
    (done ? changed : as_it_was) += 1;
  }
  CHECK(as_it_was > 0);
  CHECK(changed > 0);
}

TEST_CASE("a process that died has left it stopped: the next one goes on from there") {
  for (const char* left : {"small", "large"}) {
    Scripted s;
    s.power = Power::stopped;
    s.type = left;
    REQUIRE(s.resize());
    CHECK(s.power == Power::running);
    CHECK(s.type == "large");
    CHECK(s.stops == 0);
  }
}

TEST_CASE("one that stands still after all says so, and why") {
  Scripted s;
  s.never_starts = true;
  const Result<> done = s.resize();
  REQUIRE_FALSE(done);
  CHECK(done.error().message == "the machine is stopped, and its disk costs money: you may not start it");
  CHECK(done.error().cause);
  CHECK(s.power == Power::stopped);
}

TEST_CASE("a machine that is gone is gone") {
  Scripted s;
  s.power = Power::gone;
  const Result<> done = s.resize();
  REQUIRE_FALSE(done);
  CHECK(done.error().http_status == 404);
  CHECK(s.calls == 1);
}
