// What is counted of kernels in processes of their own: processor time of the compiler, of loading, of launches and of
// tools; the size of what is kept.
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "runtime/compute/device/processor_clock.hpp"
#include "runtime/compute/device/tool_output.hpp"
#include "runtime/compute/device/tree_time.hpp"
#include "tests/unit/device/apart_samples.hpp"

namespace rille::device {

TEST_CASE("the processor time of a confined compiler is told while it computes", "[unit][apart]") {
  KernelOptions options;
  options.cache = apart_cache();
  options.apart = true;
  options.confined = true;
  std::int64_t told_ns = 0;
  options.computed = [&](std::int64_t ns) { told_ns += ns; };
  const std::int64_t limit_ns = 300'000'000;
  options.stopped = [&] { return told_ns > limit_ns; };
  const auto k = Kernel::compile(long_to_compile, options);
  REQUIRE_FALSE(k);
  CHECK(k.error().kind == ErrorKind::cancelled);
  options.stopped = {};
  const auto now_ns = [](int whose) {
    rusage used{};
    ::getrusage(__rusage_who_t(whose), &used);
    return processor_ns(used);
  };
  told_ns = 0;
  const std::int64_t before_ns = now_ns(RUSAGE_CHILDREN);
  const auto made = Kernel::compile("__global__ void told(int* x) { x[0] = 8; }", options);
  const std::int64_t compiling_ns = now_ns(RUSAGE_CHILDREN) - before_ns;  // the kernel's own process still runs
  REQUIRE(made);
  CHECK(compiling_ns > 0);
  CHECK(told_ns >= compiling_ns);
}

TEST_CASE("what a kernel computes while it is loaded is told, and can be stopped", "[unit][apart]") {
  KernelOptions options;
  options.cache = apart_cache();
  options.apart = true;
  options.confined = true;
  std::int64_t told_ns = 0;
  options.computed = [&](std::int64_t ns) { told_ns += ns; };
  const std::string loads = std::string(syscalls) + R"x(
    static long early;
    __attribute__((constructor)) static void begin() {
      for (volatile long n = 0; n < COUNT; n = n + 1) {}
      long time[2];
      call(228, 2, (long)time);  // clock_gettime, of the process
      early = time[0] * 1000000000 + time[1];
    }
    __global__ void k(int64_t* out) { out[0] = early; })x";
  options.defines = {{"COUNT", "50000000"}};
  REQUIRE(Kernel::compile(loads, options));
  told_ns = 0;
  const auto k = Kernel::compile(loads, options);  // only loaded now
  REQUIRE(k);
  CHECK((*k)->cached());
  std::vector<long> early(1);
  std::string said;
  REQUIRE((*k)->run(line_of_threads(1, 1), {of(early)}, said).ok());
  CHECK(early[0] > 0);
  CHECK(told_ns >= early[0]);
  options.defines = {{"COUNT", "1000000000000000"}};
  bool compiled = false;
  options.disk = [&](std::int64_t) -> Result<> {  // called when the compiler has ended
    compiled = true;
    told_ns = 0;
    return success();
  };
  options.stopped = [&] { return compiled && told_ns > 300'000'000; };
  const auto stopped = Kernel::compile(loads, options);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().kind == ErrorKind::cancelled);
  CHECK(stopped.error().message.find("stopped, with the process") != std::string::npos);
}

TEST_CASE("what a kernel leaves computing is told when it ends", "[unit][apart]") {
  KernelOptions options;
  options.cache = apart_cache();
  options.apart = true;
  options.confined = true;
  std::int64_t told_ns = 0;
  options.computed = [&](std::int64_t ns) { told_ns += ns; };
  auto k = Kernel::compile(std::string(syscalls) + R"x(__global__ void k(int64_t* pid) {
    unsigned long t;
    pid[0] = call(39);
    pthread_create(&t, 0, work, 0);
  })x",
                           options);
  REQUIRE(k);
  std::vector<long> pid(1);
  std::string said;
  REQUIRE((*k)->run(line_of_threads(1, 1), {of(pid)}, said).ok());
  CHECK(gone(pid_t(pid[0])));
  told_ns = 0;
  k->reset();
  CHECK(told_ns > 50'000'000);  // more than it may compute then
}

TEST_CASE("a compiled kernel is kept on the disk only if there is room", "[unit][apart]") {
  KernelOptions options;
  options.cache = apart_cache();
  options.apart = true;
  options.confined = true;
  std::int64_t counted = 0, most = 1000;
  options.disk = [&](std::int64_t bytes) -> Result<> {
    if (counted + bytes > most) return make_error(ErrorKind::quota, "full");
    counted += bytes;
    return success();
  };
  const auto kept = [&] {
    std::int64_t bytes = 0;
    for (const auto& e : std::filesystem::directory_iterator(apart_cache() + "/apart"))
      if (e.path().extension() == ".so") bytes += std::int64_t(e.file_size());
    return bytes;
  };
  made_apart("__global__ void before() {}");  // the folder exists
  const std::int64_t before = kept();
  const char* const source = "__global__ void kept(int* x) { x[0] = 9; }";
  const auto full = Kernel::compile(source, options);
  REQUIRE_FALSE(full);
  CHECK(full.error().kind == ErrorKind::quota);
  CHECK(kept() == before);
  most = 64 << 20;
  for (int i = 0; i < 2; ++i) REQUIRE(Kernel::compile(source, options));
  CHECK(counted > 0);
  CHECK(kept() - before == counted);
}

TEST_CASE("a lane's clock counts the tools that look up a line", "[unit][apart]") {
  const auto clock = ProcessorClock::of_team();
  const std::int64_t before_ns = clock.ns();
  Spawn what;
  what.argv = {"/bin/bash", "-c",
               "for ((i = 0; i < 100000; i++)); do :; done; read -a t < /proc/$$/stat; echo ${t[13]}"};
  const long ticks = std::stol(output_of(std::move(what), 1));
  CHECK(ticks > 0);
  CHECK(clock.ns() - before_ns >= ticks * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)));
}

TEST_CASE("a lane's clock counts what its kernels apart compute", "[unit][apart]") {
  const auto k = made_apart(std::string(syscalls) + R"x(__global__ void k(int64_t* ns) {
    for (volatile int n = 0; n < 50000000; n = n + 1) {}
    long time[2];
    call(228, 2, (long)time);  // clock_gettime, of the process
    ns[0] = time[0] * 1000000000 + time[1];
  })x");
  const auto clock = ProcessorClock::of_team();
  const std::int64_t before = clock.ns();
  std::vector<long> ns(1);
  std::string said;
  for (int i = 0; i < 2; ++i) REQUIRE(k->run(line_of_threads(1, 1), {of(ns)}, said).ok());
  CHECK(ns[0] > 0);
  CHECK(clock.ns() - before >= ns[0]);
}

}  // namespace rille::device
