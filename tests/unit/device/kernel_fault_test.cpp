// Kernels that would end the process: division by zero, memory that is not there, a stack that is used up. They fail
// as a launch does, whatever else was running; what is not theirs goes to the handler that was there before.
//
// The handlers come with a process's first launch, and Catch puts its own back after each case: so each case here has a
// process of its own, started by the last one.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "runtime/compute/device/kernel.hpp"
#include "runtime/compute/device/kernel_files.hpp"

namespace rille::device {

namespace {

std::shared_ptr<Kernel> checked_kernel(const std::string& source, bool checked = false) {
  KernelOptions options;
  options.checked = checked;
  options.file = "fault.lua";
  options.line = 10;
  if (const char* cache = std::getenv("RILLE_TEST_CACHE")) options.cache = cache;
  auto k = Kernel::compile(source, options);
  if (!k) FAIL(k.error().summary() << "\n" << k.error().hint);
  return *k;
}

LaunchShape shape_of(unsigned grid, unsigned block, bool cooperative = false) {
  LaunchShape s;
  s.grid[0] = grid;
  s.block[0] = block;
  s.cooperative = cooperative;
  return s;
}

LaunchArgument ints(std::vector<int>& v) {
  LaunchArgument a;
  a.pointer = v.data();
  a.bytes = 4 * v.size();
  return a;
}

LaunchArgument number(int n) {
  LaunchArgument a;
  std::memcpy(a.value, &n, 4);
  return a;
}

Error kernel_failure(const Kernel& k, const LaunchShape& s, const std::vector<LaunchArgument>& arguments) {
  std::string said;
  const auto ran = k.run(s, arguments, said);
  REQUIRE_FALSE(ran.ok());
  CHECK(ran.error().kind == ErrorKind::device);
  CHECK(ran.error().code == "kernel_check");
  return ran.error();
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A kernel with barriers that is right, after one that was not.
void still_right() {
  static const auto k = checked_kernel(
      "__global__ void right(int* x) {\n  __shared__ int s[256]; s[threadIdx.x] = threadIdx.x;\n"
      "  __syncthreads(); x[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x];\n}");
  std::vector<int> x(256 * 64, -1);
  std::string said;
  REQUIRE(k->run(shape_of(64, 256), {ints(x)}, said).ok());
  bool right = true;
  for (int i = 0; i < 256 * 64; ++i) right = right && x[i] == 255 - i % 256;
  CHECK(right);
}

}  // namespace

TEST_CASE("a division by zero is an error of the launch, with its line", "[.fault]") {
  const std::string text =
      "__global__ void f(int* x, int d) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  x[i] = (100 + i) / d;\n}";  // Clang would divide 100 / d once, on no line
  const auto k = checked_kernel(text);
  std::vector<int> x(1 << 14);
  for (int again = 0; again < 20; ++again) {  // in a loop, and over the whole team
    const auto e = kernel_failure(*k, shape_of(64, 256), {ints(x), number(0)});
    CHECK(e.message == "kernel f: divides a whole number by zero, or the smallest one by -1 (fault.lua:12)");
    CHECK(says(e.hint, "checked = true"));
    std::string said;
    REQUIRE(k->run(shape_of(64, 256), {ints(x), number(5)}, said).ok());
    CHECK((x[0] == 20 && x.back() == (100 + (1 << 14) - 1) / 5));
    still_right();
  }
  std::vector<int> smallest = {0, 1, -1};
  CHECK(kernel_failure(*checked_kernel("__global__ void f(int* x) { x[0] = (-2147483647 - x[1]) % x[2]; }"),
                       shape_of(1, 1), {ints(smallest)})
            .message.find("by -1") != std::string::npos);
}

TEST_CASE("checked mode names the thread that divides by zero", "[.fault]") {
  const auto k = checked_kernel("__global__ void f(int* x) {\n  x[threadIdx.x] %= 3 - (int)threadIdx.x;\n}", true);
  std::vector<int> x(8, 5);
  CHECK(kernel_failure(*k, shape_of(1, 8), {ints(x)}).message ==
        "kernel f: thread (3,0,0) of block (0,0,0): divides a whole number by zero (fault.lua:11)");
  CHECK(x == std::vector<int>(8, 5));
}

TEST_CASE("a pointer to nowhere is an error of the launch", "[.fault]") {
  std::vector<int> x(1 << 14, 1);
  LaunchArgument nil;
  const auto reads = checked_kernel(
      "__global__ void f(const int* p, int* x) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  x[i] = p[i + 2];\n}");
  CHECK(says(kernel_failure(*reads, shape_of(64, 256), {nil, ints(x)}).message,
             "an address without memory (fault.lua:12)"));
  still_right();
  // From the middle of a block whose threads wait: their stacks are given up as they stand.
  const auto waits = checked_kernel(
      "__global__ void f(int* p, int* x) {\n  __shared__ int s[256];\n  s[threadIdx.x] = 1;\n"
      "  __syncthreads();\n  if (threadIdx.x == 77) p[1] = s[3];\n  __syncthreads();\n"
      "  x[threadIdx.x] = __shfl_sync(~0u, 1, 0);\n}");
  for (int again = 0; again < 20; ++again) {
    CHECK(says(kernel_failure(*waits, shape_of(64, 256), {nil, ints(x)}).message,
               "at 0x4, an address without memory (fault.lua:14)"));
    still_right();
  }
  const auto far =
      checked_kernel("__global__ void f(int* x) { x[0] = *(int*)0x123456789abcdef0ull; }");  // no address at all
  CHECK(says(kernel_failure(*far, shape_of(1, 1), {ints(x)}).message, "reads or writes at an address without memory"));
  const auto inside = checked_kernel("__global__ void f(int* p, int n) { memset(p, 0, n); }");
  CHECK(says(kernel_failure(*inside, shape_of(1, 1), {nil, number(100)}).message, "an address without memory"));
}

TEST_CASE("a stack that is used up is an error of the launch", "[.fault]") {
  const std::string text =
      "__device__ __noinline__ int deep(int n, int* x) {\n"
      "  volatile char a[4096]; a[n & 4095] = n;\n"
      "  return n <= 0 ? a[0] : deep(n - 1, x) + a[1] + x[0];\n}\n"
      "__global__ void f(int* x) { __syncthreads(); x[threadIdx.x] = deep(200, x); }";
  std::vector<int> x(8);
  const auto e = kernel_failure(*checked_kernel(text), shape_of(1, 8), {ints(x)});
  CHECK(says(e.message, "a thread needs more than the 132 kB of its stack"));
  CHECK(says(e.hint, "recursion"));
  still_right();
}

TEST_CASE("a fault of one block ends a cooperative launch", "[.fault]") {
  const auto k = checked_kernel(
      "#include <cooperative_groups.h>\n__global__ void f(int* x, int d) {\n"
      "  if (blockIdx.x == 3) x[threadIdx.x] = 100 / d;\n  cooperative_groups::this_grid().sync();\n}");
  std::vector<int> x(32);
  for (int again = 0; again < 10; ++again)
    CHECK(says(kernel_failure(*k, shape_of(8, 32, true), {ints(x), number(0)}).message, "by zero"));
  still_right();
}

TEST_CASE("launches from several threads keep their faults apart", "[.fault]") {
  std::vector<std::thread> threads;
  std::atomic<int> faults{0}, right{0};
  for (int t = 0; t < 4; ++t) {
    const auto k =
        checked_kernel("__global__ void f" + std::to_string(t) + "(int* x, int d) { x[threadIdx.x] = 6 / d; }");
    threads.emplace_back([&faults, &right, k] {
      std::vector<int> x(32);
      for (int i = 0; i < 200; ++i) {
        std::string said;
        const auto ran = k->run(shape_of(1, 32), {ints(x), number(i % 2)}, said);
        if (ran) right += x[31] == 6;
        else faults += ran.error().message.find("by zero") != std::string::npos;
      }
    });
  }
  for (auto& t : threads) t.join();
  CHECK(faults == 400);
  CHECK(right == 400);
}

namespace {

sigjmp_buf back;
volatile std::sig_atomic_t came = 0;

void own_handler(int signal, siginfo_t*, void*) {
  came = signal;
  siglongjmp(back, 1);
}

void one_launch() {
  std::vector<int> x(1);
  std::string said;
  REQUIRE(checked_kernel("__global__ void f(int* x) { x[0] = 1; }")->run(shape_of(1, 1), {ints(x)}, said).ok());
}

// How a child process ends that does this.
template <class F>
int signal_of_child(F f) {
  const pid_t child = ::fork();
  if (child == 0) {
    f();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("a fault that is not a kernel's goes to the handler that was there before", "[.fault]") {
  struct sigaction own {};
  own.sa_sigaction = own_handler;
  own.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &own, nullptr);
  std::vector<int> x(1);
  LaunchArgument nil;
  const auto bad = checked_kernel("__global__ void f(int* x) { x[0] = 1; }");
  CHECK(says(kernel_failure(*bad, shape_of(1, 1), {nil}).message, "an address without memory"));
  CHECK(came == 0);
  if (sigsetjmp(back, 1) == 0) *reinterpret_cast<volatile int*>(8) = 1;
  CHECK(came == SIGSEGV);
  came = 0;
  if (sigsetjmp(back, 1) == 0) ::raise(SIGSEGV);  // sent, while no kernel runs
  CHECK(came == SIGSEGV);
  CHECK(says(kernel_failure(*bad, shape_of(1, 1), {nil}).message, "an address without memory"));
}

TEST_CASE("without an earlier handler, a fault outside of kernels ends the process", "[.fault]") {
  for (const int signal : {SIGSEGV, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, SIG_DFL);
  one_launch();
  CHECK(signal_of_child([] { *reinterpret_cast<volatile int*>(8) = 1; }) == SIGSEGV);
  CHECK(signal_of_child([] { ::raise(SIGFPE); }) == SIGFPE);
  CHECK(signal_of_child([] { ::kill(::getpid(), SIGBUS); }) == SIGBUS);
}

TEST_CASE("kernels that would end the process fail instead", "[unit][kernel]") {
  const auto cache = WorkDirectory::create(std::filesystem::temp_directory_path().string());
  REQUIRE(cache.ok());
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  for (const char* name :
       {"a division by zero is an error of the launch\\, with its line",
        "checked mode names the thread that divides by zero", "a pointer to nowhere is an error of the launch",
        "a stack that is used up is an error of the launch", "a fault of one block ends a cooperative launch",
        "launches from several threads keep their faults apart",
        "a fault that is not a kernel's goes to the handler that was there before",
        "where nobody had a handler\\, a fault that is not a kernel's ends the process"}) {
    INFO(name);
    CHECK(std::system(("RILLE_TEST_CACHE='" + cache->path() + "' '" + self + "' \"" + name + "\" >&2").c_str()) == 0);
  }
}

}  // namespace rille::device
