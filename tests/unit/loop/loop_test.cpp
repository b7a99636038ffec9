#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <new>
#include <stdexcept>
#include <thread>

#include "runtime/core/loop/spawn.hpp"
#include "runtime/core/loop/subprocess.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/loop/together.hpp"

using namespace rille;

namespace {
std::unique_ptr<Loop> make_loop() { return Loop::create().value(); }

Async<int> add_later(Loop& loop, int a, int b) {
  RILLE_CO_CHECK(co_await sleep_for(loop, 1));
  co_return a + b;
}
Async<std::string> read_all(Stream& s) {
  std::string out;
  char block[64];
  while (true) {
    RILLE_CO_TRY(std::size_t n, co_await s.read(block, sizeof block));
    if (!n) co_return out;
    out.append(block, n);
  }
}
}  // namespace

TEST_CASE("tasks await tasks and carry values") {
  auto loop = make_loop();
  auto sum = [&]() -> Async<int> {
    RILLE_CO_TRY(int x, co_await add_later(*loop, 1, 2));
    RILLE_CO_TRY(int y, co_await add_later(*loop, x, 4));
    co_return y;
  };
  CHECK(run_blocking(*loop, sum()).value() == 7);
}

TEST_CASE("cancelling ends a sleep with the reason, also through a child source") {
  auto loop = make_loop();
  CancelSource parent;
  CancelSource child(parent.token());
  loop->post([&] { parent.cancel(make_error(ErrorKind::cancelled, "enough")); });
  auto r = run_blocking(*loop, sleep_for(*loop, 1'000'000, child.token()));
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().message == "enough");
  CHECK(run_blocking(*loop, sleep_for(*loop, 1'000'000, child.token())).error().message == "enough");
}

TEST_CASE("a deadline names what took too long") {
  auto loop = make_loop();
  auto r = run_blocking(
      *loop, with_deadline(*loop, 5, {}, "the nap", [&](CancelToken t) { return sleep_for(*loop, 1'000'000, t); }));
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == ErrorKind::timeout);
  CHECK(r.error().message.find("the nap") == 0);
}

TEST_CASE("thread jobs and posts from threads arrive on the loop thread") {
  auto loop = make_loop();
  auto here = std::this_thread::get_id();
  auto job = [&]() -> Task<bool> {
    auto there = co_await thread_job(*loop, [] { return std::this_thread::get_id(); });
    co_return there != here&& std::this_thread::get_id() == here;
  };
  CHECK(run_blocking(*loop, job()));
  bool arrived = false;
  std::thread t([&] { loop->post_from_thread([&] { arrived = std::this_thread::get_id() == here; }); });
  loop->run_until([&] { return arrived; });
  t.join();
  CHECK(arrived);
}

TEST_CASE("subprocesses: output, exit code, signal, missing program") {
  auto loop = make_loop();
  SubprocessOptions o;
  o.argv = {"sh", "-c", "read line; echo got $line; exit 3"};
  o.in = o.out = SubprocessOptions::Output::stream;
  auto child = Subprocess::start(*loop, o).value();
  auto talk = [&]() -> Async<std::string> {
    RILLE_CO_CHECK(co_await child->in()->write("hello\n"));
    co_return co_await read_all(*child->out());
  };
  CHECK(run_blocking(*loop, talk()).value() == "got hello\n");
  CHECK(run_blocking(*loop, child->wait())->code == 3);
  CHECK(run_blocking(*loop, child->wait())->text() == "exit code 3");

  o.argv = {"sleep", "1000"};
  auto sleeper = Subprocess::start(*loop, o).value();
  CHECK(sleeper->signal(SIGKILL).ok());
  CHECK(run_blocking(*loop, sleeper->wait())->signal == SIGKILL);
  CHECK(sleeper->signal(SIGKILL).ok());

  o.argv = {"no-such-program-at-all"};
  auto missing = Subprocess::start(*loop, o);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().hint.find("PATH") != std::string::npos);
}

TEST_CASE("a program that is killed when it is dropped leaves no zombie") {
  auto loop = Loop::create().value();
  SubprocessOptions o;
  o.argv = {"/bin/sleep", "1000"};
  o.kill_on_drop = true;
  for (int i = 0; i < 20; ++i) {
    auto child = Subprocess::start(*loop, o).value();
    const pid_t pid = child->pid();
    child.reset();
    CHECK((waitpid(pid, nullptr, WNOHANG) == -1 && errno == ECHILD));
  }
}

TEST_CASE("a program is found in its own PATH, and runs in the given folder with the given descriptors") {
  char folder[] = "/tmp/rille-spawn-XXXXXX";
  REQUIRE(mkdtemp(folder));
  std::string program = std::string(folder) + "/only-here";
  { std::ofstream(program) << "#!/bin/sh\npwd >&3; echo $WORD >&4; kill -0 $$ && exit 5\n"; }
  chmod(program.c_str(), 0755);
  int a[2], b[2];
  REQUIRE(pipe2(a, O_CLOEXEC) == 0);
  REQUIRE(pipe2(b, O_CLOEXEC) == 0);
  Spawn what;
  what.argv = {"only-here"};
  what.env = {{"PATH", std::string(folder) + ":/bin:/usr/bin"}, {"WORD", "said"}};
  what.directory = folder;
  what.session = what.die_with_us = true;
  // Our descriptors may have numbers given to the child.
  REQUIRE(dup3(a[1], 24, O_CLOEXEC) == 24);
  REQUIRE(dup3(b[1], 23, O_CLOEXEC) == 23);
  what.files = {{24, 3}, {23, 4}, {24, 23}};
  auto pid = spawn(what);
  REQUIRE(pid.ok());
  int status = 0;
  REQUIRE(waitpid(*pid, &status, 0) == *pid);
  CHECK(WEXITSTATUS(status) == 5);
  char text[200];
  CHECK(std::string(text, static_cast<std::size_t>(read(a[0], text, sizeof text))) == std::string(folder) + "\n");
  CHECK(std::string(text, static_cast<std::size_t>(read(b[0], text, sizeof text))) == "said\n");

  what.env.clear();  // not in ours
  auto missing = spawn(what);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == "errno 2");
  CHECK(missing.error().hint.find("in PATH") != std::string::npos);
  what.argv[0] = "sh";
  what.directory = std::string(folder) + "/gone";
  CHECK(spawn(what).error().hint.find("does '" + what.directory + "' exist") != std::string::npos);
  what.argv.clear();
  CHECK(spawn(what).error().kind == ErrorKind::invalid);
  for (int fd : {a[0], a[1], b[0], b[1], 23, 24}) close(fd);
  unlink(program.c_str());
  rmdir(folder);
}

TEST_CASE("a program does not inherit what this process has open") {
  const int file = ::open("/dev/null", O_RDONLY);  // as a host program may, without O_CLOEXEC
  REQUIRE(file > 2);
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  Spawn what;
  what.argv = {"sh", "-c", "ls /proc/$$/fd; :"};
  what.files = {{ends[1], 1}};
  auto pid = spawn(what);
  REQUIRE(pid.ok());
  int status = 0;
  REQUIRE(waitpid(*pid, &status, 0) == *pid);
  char text[4000];
  CHECK(std::string(text, static_cast<std::size_t>(read(ends[0], text, sizeof text))) == "0\n1\n2\n");
  for (const int fd : {file, ends[0], ends[1]}) close(fd);
}

TEST_CASE("writing to a dead child is an error, not a signal") {
  auto loop = make_loop();
  struct sigaction action {};
  sigaction(SIGPIPE, nullptr, &action);
  REQUIRE(action.sa_handler == SIG_DFL);
  sigaction(SIGCHLD, nullptr, &action);
  SubprocessOptions o;
  o.argv = {"true"};
  o.in = SubprocessOptions::Output::stream;
  auto child = Subprocess::start(*loop, o).value();
  run_blocking(*loop, child->wait()).value();
  auto r = run_blocking(*loop, child->in()->write(std::string(1 << 20, 'x')));
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == ErrorKind::io);
  CHECK(action.sa_handler == SIG_DFL);
}

TEST_CASE("a turn ends although very much is ready, and the rest keeps its order") {
  auto made = Loop::create();
  REQUIRE(made);
  Loop& loop = **made;
  std::vector<int> ran;
  for (int i = 0; i < 50; ++i)
    loop.post([&, i] {
      const std::int64_t until = loop.clock().monotonic_ns() + 1'000'000;
      while (loop.clock().monotonic_ns() < until) {}
      ran.push_back(i);
      if (i == 0) loop.post([&] { ran.push_back(50); });
    });
  CHECK(loop.turn(0));
  CHECK(ran.size() < 50);
  CHECK_FALSE(ran.empty());
  while (loop.turn(1)) {}
  REQUIRE(ran.size() == 51);
  CHECK(std::is_sorted(ran.begin(), ran.end()));
}

TEST_CASE("a thread's post reaches a host that polls and turns, though nothing else is on the loop") {
  auto loop = make_loop();
  bool arrived = false, polled = true;
  while (loop->poll_timeout_ms() == 0) loop->turn(0);
  REQUIRE(loop->poll_timeout_ms() == -1);
  std::thread t([&] { loop->post_from_thread([&] { arrived = true; }); });
  while (!arrived) {
    struct pollfd p {
      loop->poll_fd(), POLLIN, 0
    };
    int timeout = loop->poll_timeout_ms();
    polled = poll(&p, 1, timeout < 0 ? 60'000 : timeout) == 1 || timeout >= 0;
    if (!polled) break;
    loop->turn(0);
  }
  t.join();
  CHECK(polled);
  CHECK(arrived);
}

TEST_CASE("all that threads post arrives, and the loop may end while they still return from it") {
  for (int round = 0; round < 200; ++round) {
    auto loop = make_loop();
    constexpr int threads = 3, each = 20;
    int got = 0;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&loop = *loop, &got] {
        for (int i = 0; i < each; ++i) loop.post_from_thread([&got] { ++got; });
      });
    if (round % 2) loop->expect();  // then it spins, too
    loop->run_until([&] { return got == threads * each; });
    if (round % 3 == 0) loop.reset();
    for (auto& t : all) t.join();
    REQUIRE(got == threads * each);
  }
}

TEST_CASE("while many posts are awaited, timers are heard, and each post arrives") {
  auto loop = make_loop();
  constexpr int many = 40;
  std::atomic<bool> fired{false};
  int got = 0;
  for (int i = 0; i < many; ++i) loop->expect();
  Timer timer(*loop, 1, [&] { fired = true; });
  std::thread t([&loop = *loop, &fired, &got] {
    while (!fired) std::this_thread::yield();  // none comes before
    for (int i = 0; i < many; ++i) loop.post_from_thread([&] { loop.arrived(), ++got; });
  });
  loop->run_until([&] { return got == many; });
  t.join();
  CHECK(got == many);
}

TEST_CASE("a descriptor that was added after the last poll makes the next turn due at once") {
  auto loop = make_loop();
  while (loop->poll_timeout_ms() == 0) loop->turn(0);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  uv_poll_t watch;
  uv_poll_init(loop->uv(), &watch, ends[0]);
  uv_poll_start(&watch, UV_READABLE, [](uv_poll_t*, int, int) {});
  CHECK(loop->poll_timeout_ms() == 0);
  loop->turn(0);
  CHECK(loop->poll_timeout_ms() == -1);
  uv_close(reinterpret_cast<uv_handle_t*>(&watch), nullptr);
  loop->turn(0);
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("a host can drive the loop by descriptor and timeout") {
  auto loop = make_loop();
  bool done = false;
  loop->spawn([](Loop& l, bool& flag) -> Task<void> {
    co_await sleep_for(l, 2);
    flag = true;
  }(*loop, done));
  CHECK(loop->poll_fd() >= 0);
  int turns = 0;
  while (loop->turn(1) && turns < 1'000'000) {
    int timeout = loop->poll_timeout_ms();
    REQUIRE(timeout >= 0);
    ++turns;
    uv_sleep(static_cast<unsigned>(timeout));
  }
  CHECK(done);
}

TEST_CASE("unix sockets connect, and a destroyed loop frees suspended tasks") {
  auto loop = make_loop();
  std::string path = "/tmp/rille-loop-test-" + std::to_string(getpid());
  auto listener = Listener::listen_unix(*loop, path).value();
  auto serve = [&]() -> Async<std::string> {
    RILLE_CO_TRY(auto client, co_await Stream::connect_unix(*loop, path));
    RILLE_CO_TRY(auto server, co_await listener->accept());
    RILLE_CO_CHECK(co_await client->write("ping"));
    client->shutdown_write();
    co_return co_await read_all(*server);
  };
  CHECK(run_blocking(*loop, serve()).value() == "ping");
  loop->spawn([](Loop& l) -> Task<void> { co_await sleep_for(l, 1'000'000); }(*loop));
}

TEST_CASE("what a thread job throws is its error") {
  auto loop = make_loop();
  const auto job = [&](bool memory) -> Async<int> {
    std::function<Result<int>()> body = [memory]() -> Result<int> {
      if (memory) throw std::bad_alloc();
      throw std::out_of_range("stod");
    };
    co_return co_await thread_job(*loop, std::move(body));
  };
  CHECK(run_blocking(*loop, job(true)).error().kind == ErrorKind::memory);
  const Error thrown = run_blocking(*loop, job(false)).error();
  CHECK(thrown.kind == ErrorKind::internal);
  CHECK(thrown.message == "stod");
}

TEST_CASE("a thread job outlives the coroutine that waits for it") {
  std::atomic<bool> begun = false, go = false;
  std::string seen;
  std::thread ends;
  {
    auto loop = make_loop();
    const auto wait = [](Loop& l, std::string text, auto* b, auto* g, std::string* s) -> Task<void> {
      std::function<Result<>()> body = [text, b, g, s]() -> Result<> {
        *b = true;
        while (!*g) std::this_thread::yield();
        *s = text;
        return success();
      };
      (void)co_await thread_job(l, std::move(body));
    };
    loop->spawn(wait(*loop, std::string(1000, 'x'), &begun, &go, &seen));
    while (!begun) loop->turn(0);
    ends = std::thread([&go] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      go = true;
    });
  }
  ends.join();
  CHECK(seen == std::string(1000, 'x'));
}

namespace {
struct Counted {
  explicit Counted(int& n) : count(n) { ++count; }
  ~Counted() { --count; }
  Counted(const Counted&) = delete;
  int& count;
};

Together<void> passing(Future<bool> gate, int& running, int& ended) {
  return {"a gate", [gate, &running, &ended](CancelToken) -> Async<> {
            const Counted counted(running);
            co_await gate;
            ++ended;
            co_return success();
          }};
}

detail::Branch await_both(Loop& loop, Future<bool> first, Future<bool> second, int& running, int& ended) {
  std::vector<Together<void>> both;
  both.push_back(passing(first, running, ended));
  both.push_back(passing(second, running, ended));
  (void)co_await together(loop, std::move(both), 0, CancelToken());
  ended += 10;
}
}  // namespace

TEST_CASE("tasks that run together are destroyed with the task that awaits them") {
  auto loop = Loop::create().value();
  for (const bool destroyed : {false, true}) {
    const Future<bool> first(*loop), second(*loop);
    int running = 0, ended = 0;
    std::optional<detail::Branch> owner = await_both(*loop, first, second, running, ended);
    owner->start();
    CHECK(running == 2);
    first.set(true);
    loop->turn(1);
    CHECK(running == 1);
    CHECK(ended == 1);
    if (destroyed) owner.reset();
    CHECK(running == (destroyed ? 0 : 1));
    second.set(true);
    for (int turns = 0; turns < 3; ++turns) loop->turn(1);
    CHECK(running == 0);
    CHECK(ended == (destroyed ? 1 : 12));
  }
}
