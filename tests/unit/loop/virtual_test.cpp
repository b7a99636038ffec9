// Virtual time: timers fire without waiting, in a deterministic order, and wait for real work.
#include <catch2/catch.hpp>

#include "runtime/core/loop/thread_job.hpp"

using namespace rille;

namespace {
Async<> note_after(Loop& loop, std::vector<std::string>& notes, std::string name, std::int64_t ms) {
  RILLE_CO_CHECK(co_await sleep_for(loop, ms));
  notes.push_back(name);
  co_return success();
}
Task<void> drop(Async<> task) { (void)co_await std::move(task); }
}  // namespace

TEST_CASE("virtual time jumps to the next timer, and timers of one instant keep their order") {
  VirtualTime time(1'000'000);
  auto loop = Loop::create_virtual(time).value();
  std::vector<std::string> notes;
  loop->spawn(drop(note_after(*loop, notes, "a week", 7LL * 86'400'000)));
  loop->spawn(drop(note_after(*loop, notes, "first", 1000)));
  loop->spawn(drop(note_after(*loop, notes, "second", 1000)));
  loop->run_until([&] { return notes.size() == 3; });
  CHECK(notes == std::vector<std::string>{"first", "second", "a week"});
  CHECK(time.wall_us() == 1'000'000 + 7LL * 86'400'000'000);
  CHECK(time.monotonic_ns() == 7LL * 86'400'000'000'000);
}

TEST_CASE("a cancelled sleep and a destroyed timer leave nothing behind") {
  VirtualTime time;
  auto loop = Loop::create_virtual(time).value();
  CancelSource source;
  {
    Timer gone(*loop, 5, [] { FAIL("it was destroyed"); });
  }
  Timer cancel(*loop, 10, [&] { source.cancel(make_error(ErrorKind::cancelled, "enough")); });
  auto r = run_blocking(*loop, sleep_for(*loop, 1000, source.token()));
  REQUIRE_FALSE(r.ok());
  CHECK(time.monotonic_ns() == 10'000'000);
  bool never = false;
  loop->run_until([&] { return never; });  // returns: no event remains
  CHECK(time.fired() == 1);
}

TEST_CASE("virtual time stands still while a thread works, and ends at the given time") {
  VirtualTime time;
  auto loop = Loop::create_virtual(time).value();
  std::vector<std::string> notes;
  loop->spawn(drop(note_after(*loop, notes, "timer", 1)));
  auto job = [&]() -> Async<> {
    auto work = [] { return Result<int>(7); };
    (void)co_await thread_job(*loop, std::move(work));
    notes.push_back("thread");
    co_return success();
  };
  loop->spawn(drop(job()));
  loop->run_until([&] { return notes.size() == 2; });
  CHECK(notes == std::vector<std::string>{"thread", "timer"});

  time.end_at(time.wall_us() + 1'000'000);
  loop->spawn(drop(note_after(*loop, notes, "too late", 1001)));
  loop->run_until([&] { return notes.size() == 3; });
  CHECK(notes.size() == 2);
}

TEST_CASE("a host that turns a loop with virtual time gets on") {
  VirtualTime time;
  auto loop = Loop::create_virtual(time).value();
  std::vector<std::string> notes;
  loop->spawn(drop(note_after(*loop, notes, "later", 3'600'000)));
  for (int i = 0; i < 10 && notes.empty(); ++i) {
    CHECK(loop->poll_timeout_ms() == 0);
    loop->turn(1);
  }
  CHECK(notes.size() == 1);
}
