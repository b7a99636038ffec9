#include "runtime/core/loop/command.hpp"

#include <signal.h>

#include <catch2/catch.hpp>

#include "runtime/core/loop/together.hpp"

using namespace rille;

namespace {

struct Commands {
  std::unique_ptr<Loop> loop = Loop::create().value();

  Result<CommandResult> run(std::vector<std::string> argv, std::string input = "", std::int64_t timeout_ms = 20'000) {
    CommandOptions options;
    options.argv = std::move(argv);
    options.input = std::move(input);
    options.timeout_ms = timeout_ms;
    return run_blocking(*loop, run_command(*loop, std::move(options)));
  }
};

}  // namespace

TEST_CASE_METHOD(Commands, "a command's words and end") {
  const auto done = run({"sh", "-c", "cat; echo no >&2; exit 3"}, "hello");
  REQUIRE(done);
  CHECK(done->out == "hello");
  CHECK(done->last_words() == "no");
  CHECK(done->status.code == 3);
  CHECK_FALSE(done->ok());
}

TEST_CASE_METHOD(Commands, "much in both directions at once") {
  const std::string much(3 << 20, 'x');
  const auto done = run({"cat"}, much);
  REQUIRE(done);
  CHECK(done->out == much);
}

TEST_CASE_METHOD(Commands, "a program that does not read is no failure") {
  const auto done = run({"true"}, std::string(1 << 20, 'x'));
  REQUIRE(done);
  CHECK(done->ok());
}

TEST_CASE_METHOD(Commands, "no such program; one that takes too long") {
  CHECK(run({"/no/such/program"}).error().kind == ErrorKind::io);
  const auto late = run({"sleep", "1000"}, "", 50);
  REQUIRE_FALSE(late);
  CHECK(late.error().kind == ErrorKind::timeout);
  CHECK(late.error().message.find("sleep") != std::string::npos);
}

TEST_CASE_METHOD(Commands, "what a program leaves behind does not hold its end up") {
  const auto done = run({"sh", "-c", "sleep 30 & echo done"});
  REQUIRE(done);
  CHECK(done->out == "done\n");
}

TEST_CASE_METHOD(Commands, "several at once: the answers in order, a slow one with its own end") {
  std::vector<Together<int>> all;
  const auto after = [this](std::int64_t ms, int value) {
    return [this, ms, value](CancelToken token) -> Async<int> {
      const auto wait = [](Loop& l, std::int64_t time_ms, int v, CancelToken t) -> Async<int> {
        RILLE_CO_CHECK(co_await sleep_for(l, time_ms, t));
        co_return v;
      };
      return wait(*loop, ms, value, token);
    };
  };
  all.push_back({"one", after(30, 1)});
  all.push_back({"never", after(100'000, 2)});
  all.push_back({"three", after(1, 3)});
  const auto answers = run_blocking(*loop, together(*loop, std::move(all), 300, CancelToken()));
  REQUIRE(answers.size() == 3);
  CHECK(*answers[0] == 1);
  CHECK(answers[1].error().kind == ErrorKind::timeout);
  CHECK(answers[1].error().message.find("never") != std::string::npos);
  CHECK(*answers[2] == 3);
  std::vector<Together<int>> none;
  CHECK(run_blocking(*loop, together(*loop, std::move(none), 0, CancelToken())).empty());
}

TEST_CASE_METHOD(Commands, "where the host ignores SIGCHLD, how a program ended is not known, which is no success") {
  const auto before = signal(SIGCHLD, SIG_IGN);
  const auto done = run({"sh", "-c", "exit 3"});
  signal(SIGCHLD, before);
  REQUIRE_FALSE(done);
  CHECK(done.error().kind == ErrorKind::state);
  CHECK_THAT(done.error().message, Catch::Contains("SIGCHLD"));
}
