// Kernels in a process of their own: that they compute the same (all of kernel_run_test.cpp runs so in
// unit.device.apart), and what code in them that wants to get out can reach.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/compute/device/apart/kernel_process.hpp"
#include "runtime/compute/device/kernel_files.hpp"
#include "tests/unit/device/kernel_samples.hpp"

namespace rille::device {

namespace {

const std::string& apart_cache() {
  static const WorkDirectory directory = *WorkDirectory::create(std::filesystem::temp_directory_path().string());
  return directory.path();
}

Result<std::shared_ptr<Kernel>> compile_apart(std::string_view source, bool checked = false,
                                              std::vector<std::string> flags = {}) {
  KernelOptions options;
  options.cache = apart_cache();
  options.apart = true;
  options.checked = checked;
  options.flags = std::move(flags);
  options.file = "test.lua";
  options.line = 10;
  return Kernel::compile(source, options);
}

std::shared_ptr<Kernel> made_apart(std::string_view source, bool checked = false) {
  auto k = compile_apart(source, checked);
  if (!k) FAIL(k.error().summary());
  return *k;
}

template <class T>
LaunchArgument of(std::vector<T>& v) {
  LaunchArgument a;
  a.pointer = v.data();
  a.bytes = v.size() * sizeof(T);
  return a;
}
LaunchArgument of(int n) {
  LaunchArgument a;
  std::memcpy(a.value, &n, sizeof n);
  return a;
}

LaunchShape line_of_threads(unsigned blocks, unsigned threads) {
  LaunchShape s;
  s.grid[0] = blocks;
  s.block[0] = threads;
  return s;
}

// What a kernel's system calls give, made by code that asks nobody.
const char* const syscalls = R"x(
  static long call(long n, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
    long r; register long r10 asm("r10") = d; register long r8 asm("r8") = e;
    asm volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return r;
  }
)x";

std::vector<long> answers(const std::string& body, std::size_t n) {
  const auto k = made_apart(std::string(syscalls) + "__global__ void k(int64_t* out) {" + body + "}");
  std::vector<long> out(n, -9999);
  std::string said;
  const auto r = k->run(line_of_threads(1, 1), {of(out)}, said);
  if (!r) FAIL(r.error().summary());
  return out;
}

}  // namespace

TEST_CASE("a kernel apart computes, prints, shares overlapping arguments and keeps its variables", "[unit][apart]") {
  const auto k = made_apart(R"x(
    __device__ int launches;
    __global__ void k(int n, const int* x, int* y) {
      __shared__ int sum;
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (threadIdx.x == 0) sum = 0;
      __syncthreads();
      if (i < n) atomicAdd(&sum, x[i]);
      __syncthreads();
      if (i < n) y[i] += sum;
      if (i == 0) printf("launch %d\n", launches++);
    })x");
  std::vector<int> x(100, 2), y(100, 1);
  std::string said;
  REQUIRE(k->run(line_of_threads(1, 128), {of(100), of(x), of(y)}, said).ok());
  CHECK(y == std::vector<int>(100, 201));
  CHECK(said == "launch 0\n");
  LaunchArgument half = of(x);
  half.pointer = x.data() + 50;
  half.bytes /= 2;
  REQUIRE(k->run(line_of_threads(1, 64), {of(50), of(x), half}, said).ok());
  CHECK(said == "launch 1\n");
  CHECK(x[49] == 2);
  CHECK(x[50] == 102);
}

TEST_CASE("checked mode apart names thread, argument and line", "[unit][apart]") {
  const auto k = made_apart("__global__ void k(int n, float* x) {\n  x[threadIdx.x + 1] = 1;\n}", true);
  std::vector<float> x(8);
  std::string said;
  const auto r = k->run(line_of_threads(1, 8), {of(8), of(x)}, said);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().code == "kernel_check");
  CHECK(r.error().message.find("writes x[8], which has 8 elements (test.lua:11)") != std::string::npos);
  CHECK(x == std::vector<float>(8));
}

TEST_CASE("a kernel apart that never ends is stopped, and its process with it", "[unit][apart]") {
  const auto k = made_apart("__global__ void k(volatile int* x) { while (x[0] == 0) {} }");
  std::vector<int> x(1);
  std::atomic<bool> stop{false};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop = true;
  });
  std::string said;
  const auto r = k->run(line_of_threads(1, 1), {of(x)}, said, [&] { return stop.load(); });
  later.join();
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == ErrorKind::cancelled);
  const auto again = k->run(line_of_threads(1, 1), {of(x)}, said);
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().message.find("has ended") != std::string::npos);
}

TEST_CASE("a kernel apart that ends its process is an error", "[unit][apart]") {
  std::string said;
  const auto leaves = made_apart(std::string(syscalls) + "__global__ void k() { call(231, 3); }");  // exit_group
  const auto left = leaves->run(line_of_threads(1, 1), {}, said);
  REQUIRE_FALSE(left.ok());
  CHECK(left.error().message.find("has ended with status 3") != std::string::npos);
  const auto lies =
      made_apart(std::string(syscalls) +
                 R"x(__global__ void k() { char b[99]; call(44, 3, (long)b, sizeof b); while (true) {} })x");
  const auto lied = lies->run(line_of_threads(1, 1), {}, said);
  REQUIRE_FALSE(lied.ok());
  CHECK(lied.error().kind == ErrorKind::integrity);
}

TEST_CASE("a kernel apart reaches no file, process, network or variable", "[unit][apart]") {
  ::setenv("RILLE_TEST_SECRET", "hidden", 1);
  const std::string own = apart_cache() + "/mine";
  std::ofstream(own) << "secret";
  std::string path;
  for (const char c : own) path += std::to_string(int(c)) + ",";
  const auto out = answers("const char own[] = {" + path + R"x(0};
    out[0] = call(257, -100, (long)"/etc/passwd", 0);               // openat, to read
    out[1] = call(257, -100, (long)own, 0);
    out[2] = call(257, -100, (long)"/tmp/rille-written", 0101, 0600);
    out[3] = call(2, (long)"/etc/passwd", 0);                        // open
    out[4] = call(41, 2, 1);                                         // socket
    out[5] = call(57);                                               // fork
    out[6] = call(56, 17);                                           // clone, a process
    out[7] = call(59, (long)"/bin/true");                            // execve
    out[8] = call(62, call(110), 0);                                 // kill(getppid())
    out[9] = call(101, 16, 1);                                       // ptrace
    out[10] = call(310, 1);                                          // process_vm_readv
    out[11] = call(157, 1, 0);                                       // prctl(PR_SET_PDEATHSIG)
    out[12] = call(87, (long)own);                                   // unlink
    out[13] = call(77, 4, 0);                                        // ftruncate, of the memory
    out[14] = call(257, -100, (long)"/proc/self/environ", 0);
    out[15] = call(257, -100, (long)"/proc/self/fd/5", 2);           // its own code, to write
  )x",
                           16);
  for (const int i : {0, 1, 14}) CHECK(out[i] == -EACCES);
  for (const int i : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15}) {
    CAPTURE(i);
    CHECK(out[i] == -EPERM);
  }
  const auto k = made_apart(R"x(extern "C" char** environ;
    __global__ void k(int* found) {
      for (char** e = environ; e && *e; ++e) for (const char* s = *e; *s; ++s) found[0] += s[0] == 'h' && s[1] == 'i';
    })x");
  std::vector<int> found(1);
  std::string said;
  REQUIRE(k->run(line_of_threads(1, 1), {of(found)}, said).ok());
  CHECK(found[0] == 0);
}

TEST_CASE("code that runs while a kernel is loaded is confined as well", "[unit][apart]") {
  const auto k = made_apart(std::string(syscalls) + R"x(
    static long early;
    __attribute__((constructor)) static void begin() { early = call(257, -100, (long)"/etc/passwd", 0); }
    __global__ void k(int64_t* out) { out[0] = early; })x");
  std::vector<long> out(1);
  std::string said;
  REQUIRE(k->run(line_of_threads(1, 1), {of(out)}, said).ok());
  CHECK(out[0] == -EACCES);
}

TEST_CASE("a confined compiler reads no file of the user and starts no program", "[unit][apart]") {
  const std::string secret = apart_cache() + "/../rille-secret-" + std::to_string(::getpid());
  std::ofstream(secret) << "#error the_secret_text\n";
  const auto include = compile_apart("#include \"" + secret + "\"\n__global__ void k() {}");
  REQUIRE_FALSE(include.ok());
  CHECK(include.error().summary().find("the_secret_text") == std::string::npos);
  const auto bytes = compile_apart("asm(\".incbin \\\"" + secret + "\\\"\");\n__global__ void k() {}");
  CHECK_FALSE(bytes.ok());
  for (const char* flag : {"-wrapper", "-fplugin=/tmp/x.so", "-Wl,-rpath,/", "-B/tmp", "@/etc/passwd"}) {
    const auto r = compile_apart("__global__ void k() {}", false, {flag});
    REQUIRE_FALSE(r.ok());
    CHECK(r.error().kind == ErrorKind::denied);
  }
  CHECK(compile_apart("__global__ void k() {}", false, {"-O2", "-DN=3", "-ffast-math"}).ok());
  std::filesystem::remove(secret);
}

TEST_CASE("a runner that is killed leaves no kernel's process", "[unit][apart]") {
  const auto pid_of = made_apart(std::string(syscalls) + "__global__ void k(int64_t* out) { out[0] = call(39); }");
  std::vector<long> warm(1);
  std::string said;
  REQUIRE(pid_of->run(line_of_threads(1, 1), {of(warm)}, said).ok());  // compiled: the child below needs no compiler
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t runner = ::fork();
  if (runner == 0) {
    const auto k = compile_apart(std::string(syscalls) + "__global__ void k(int64_t* out) { out[0] = call(39); }");
    std::vector<long> out(1);
    if (k && (*k)->run(line_of_threads(1, 1), {of(out)}, said).ok() && ::write(ends[1], out.data(), 8) == 8) ::pause();
    ::_exit(1);
  }
  long pid = 0;
  REQUIRE(::read(ends[0], &pid, 8) == 8);
  CHECK(::kill(pid_t(pid), 0) == 0);
  ::kill(runner, SIGKILL);
  REQUIRE(::waitpid(runner, nullptr, 0) == runner);
  bool gone = false;
  for (int i = 0; i < 500 && !gone; ++i) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    gone = text.empty() || text.find(") Z ") != text.npos;
    ::usleep(10'000);
  }
  CHECK(gone);
}

}  // namespace rille::device
