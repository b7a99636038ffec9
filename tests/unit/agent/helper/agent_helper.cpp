// The agent's processes as tests need them: `agent_helper agent connect|keeper|daemon|worker ..`. The worker does what
// its spec says in `do`. RILLE_TEST_CLOCK names a file that holds the wall time in microseconds; RILLE_TEST_TICK the
// dead man's tick in milliseconds.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "runtime/core/loop/subprocess.hpp"
#include "runtime/workflow/agent/daemon.hpp"
#include "runtime/workflow/agent/metric.hpp"
#include "runtime/workflow/agent/worker_channel.hpp"

using namespace rille;
using namespace rille::agent;

namespace {

class FileClock : public Clock {
 public:
  explicit FileClock(std::string path) : path_(std::move(path)) {}
  std::int64_t wall_us() const override {
    std::ifstream file(path_);
    std::int64_t now = 0;
    if (file >> now) last_ = now;
    return last_;
  }
  std::int64_t monotonic_ns() const override { return system_clock().monotonic_ns(); }

 private:
  std::string path_;
  mutable std::int64_t last_ = 1;
};

std::string option(int argc, char** argv, const char* name) {
  for (int i = 3; i + 1 < argc; ++i)
    if (!std::strcmp(argv[i], name)) return argv[i + 1];
  return {};
}

Async<> wait_for_file(Loop& loop, std::string path, CancelToken token) {
  while (access(path.c_str(), F_OK) != 0) RILLE_CO_CHECK(co_await sleep_for(loop, 2, token));
  co_return success();
}

Async<int> work(Loop& loop, WorkerChannel& channel) {
  const Value& spec = channel.spec()["payload"].is_null() ? channel.spec() : channel.spec()["payload"];
  std::string what = spec.text("do");
  Result<Value> result = spec["value"];
  if (what == "hold") {  // says so, then waits for a file or for its cancellation
    printf("holding %d\n", channel.attempt());
    fflush(stdout);
    channel.progress(Value::Object{{"pid", static_cast<std::int64_t>(getpid())}});
    if (!spec["checkpoint"].is_null()) channel.checkpoint(spec["checkpoint"]);
    auto waited = co_await wait_for_file(loop, spec.text("file"), channel.cancelled());
    if (!waited && spec.boolean("stubborn")) waited = co_await wait_for_file(loop, spec.text("file"), {});
    if (!waited) result = waited.error();
    printf("done\n");
    fflush(stdout);
  } else if (what == "lines") {
    for (int i = 0; i < spec.integer("count"); ++i) printf("line %d\n", i);
    fflush(stdout);
  } else if (what == "metrics") {  // one of each step; between the two halves it waits for a file
    for (int step = 1; step <= spec.integer("count"); ++step) {
      if (step == spec.integer("count") / 2 + 1)
        RILLE_CO_CHECK(co_await wait_for_file(loop, spec.text("file"), channel.cancelled()));
      Metric m;
      m.name = "loss", m.value = 1.0 / step, m.step = step, m.at_us = loop.clock().wall_us();
      channel.metric(metric_line(m));
    }
  } else if (what == "die") {
    printf("one\ntwo\nlast words\n");
    fflush(stdout);
    _exit(static_cast<int>(spec.integer("code")));
  } else if (what == "progress and die") {  // publishes what `step` says, then ends as if the kernel ended it
    Value step = Value(spec.integer("step") * (spec.boolean("grows") ? channel.attempt() : 1));
    channel.progress(Value::Object{{"step", step}});
    if (spec.integer("step")) channel.checkpoint(Value::Object{{"step", step}, {"directory", Value("")}});
    printf("attempt %d\n", channel.attempt());
    fflush(stdout);
    RILLE_CO_CHECK(co_await sleep_for(loop, 20));
    if (channel.attempt() < spec.integer("attempts", 1'000'000)) raise(SIGKILL);
  } else if (what == "spin") {  // heeds nothing
    printf("spinning\n");
    fflush(stdout);
    for (;;) pause();
  } else if (what == "notice") {  // waits for the notice and returns it; with `leave`, until it is also asked to leave
    printf("waiting\n");
    fflush(stdout);
    auto told = [&] { return channel.preempting(); };
    while (!told().deadline_wall_us || (spec.boolean("leave") && !told().leave))
      RILLE_CO_CHECK(co_await sleep_for(loop, 2, channel.cancelled()));
    result = Value().set("deadline", told().deadline_wall_us).set("leave", told().leave);
  } else if (what == "huge") {
    result = Value(std::string(70 << 20, 'x'));
  } else if (what == "checkpoint") {
    result = channel.last_checkpoint();
  } else if (what == "environment") {
    Value out;
    for (const char* name : {"RILLE_INSTANCE", "GOMP_SPINCOUNT", "PWD"})
      out.set(name, getenv(name) ? getenv(name) : "");
    char directory[4096];
    out.set("directory", getcwd(directory, sizeof directory) ? directory : "");
    result = out;
  }
  RILLE_CO_CHECK(co_await channel.finish(std::move(result)));
  co_return 0;
}

Result<int> run(int argc, char** argv) {
  const char* clock_file = getenv("RILLE_TEST_CLOCK");
  FileClock file_clock(clock_file ? clock_file : "");
  RILLE_TRY(auto loop, Loop::create(clock_file ? static_cast<const Clock&>(file_clock) : system_clock()));
  std::string what = argc > 2 ? argv[2] : "", self = argv[0];
  if (what == "connect") {
    ConnectOptions options{option(argc, argv, "--dir"), {self, "agent", "keeper"}};
    return run_blocking(*loop, run_connect(*loop, std::move(options)));
  }
  if (what == "keeper") {
    KeeperOptions options{option(argc, argv, "--dir"), {self, "agent", "daemon"}, 10};
    return run_blocking(*loop, run_keeper(*loop, std::move(options)));
  }
  if (what == "daemon") {
    DaemonOptions options;
    options.directory = option(argc, argv, "--dir");
    options.worker_argv = {self, "agent", "worker"};
    options.build = "test";
    options.log_bytes_max = 256 << 10;
    if (const char* tick = getenv("RILLE_TEST_TICK")) options.tick_ms = std::atoi(tick);
    return run_blocking(*loop, run_daemon(*loop, std::move(options)));
  }
  RILLE_TRY(auto channel, WorkerChannel::open(*loop, option(argc, argv, "--dir"), option(argc, argv, "--call")));
  return run_blocking(*loop, work(*loop, *channel));
}

}  // namespace

int main(int argc, char** argv) {
  auto result = run(argc, argv);
  if (result) return *result;
  fprintf(stderr, "%s\n", result.error().summary().c_str());
  return 1;
}
