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

#include "runtime/compute/device/apart/confined.hpp"
#include "runtime/compute/device/apart/kernel_process.hpp"
#include "runtime/compute/device/apart/messages.hpp"
#include "runtime/compute/device/kernel_files.hpp"
#include "runtime/compute/device/kernel_includes.hpp"
#include "runtime/compute/device/tool_output.hpp"
#include "runtime/core/base/id.hpp"
#include "tests/unit/device/apart_samples.hpp"

namespace rille::device {

namespace {

std::vector<long> answers(const std::string& body, std::size_t n) {
  const auto k = made_apart(std::string(syscalls) + "__global__ void k(int64_t* out) {" + body + "}");
  std::vector<long> out(n, -9999);
  std::string said;
  const auto r = k->run(line_of_threads(1, 1), {of(out)}, said);
  if (!r) FAIL(r.error().summary());
  return out;
}

Error ended_by(const Kernel& k) {
  std::string said;
  const auto r = k.run(line_of_threads(1, 1), {}, said);
  if (r) FAIL("the kernel has not been ended");
  return r.error();
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

TEST_CASE("an access beyond an argument names the argument and the line, and the kernel goes on", "[unit][apart]") {
  for (const bool confined : {true, false}) {
    KernelOptions options;
    options.cache = apart_cache();
    options.apart = true;
    options.confined = confined;
    options.file = "test.lua";
    const auto made = Kernel::compile(
        "__global__ void k(int from, const float* x, float* y) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x + from;\n"
        "  y[i] = 2 * x[i];\n}",
        options);
    REQUIRE(made.ok());
    const Kernel& k = **made;
    std::vector<float> x(100, 1), y(100, 0), odd(101, 0), odd_too(101, 1), more(4096, 1);
    const auto launch = [&](unsigned blocks, int from, std::vector<float>& in, std::vector<float>& out) {
      std::string said;
      const auto r = k.run(line_of_threads(blocks, 64), {of(from), of(in), of(out)}, said);
      return r ? "" : r.error().message;
    };
    CHECK(launch(1, 0, x, y) == "");
    CHECK(launch(1, 64, more, y) == "kernel k: reaches y[100], which has 100 elements (test.lua:3)");
    CHECK(launch(1, 64, x, more) == "kernel k: reaches x[100], which has 100 elements (test.lua:3)");
    const std::string far = launch(16384, 0, more, y);  // the first of several threads of the system counts
    CHECK(far.starts_with("kernel k: reaches y["));
    CHECK(far.ends_with("], which has 100 elements (test.lua:3)"));
    // between an odd end and its page's end, and before the beginning: what was written there is found
    CHECK(launch(1, 38, more, odd) == "kernel k: writes y[101], which has 101 elements");
    CHECK(launch(1, -1, odd_too, odd) == "kernel k: writes y[-1], which has 101 elements");
    CHECK(launch(1, 0, x, y) == "");
  }
}

TEST_CASE("checked mode finds races in an argument's memory, and none where there is none", "[unit][apart][kernel]") {
  const auto said_of = [](const std::string& body, unsigned blocks, unsigned threads) {
    const auto k = made_apart(
        "__global__ void k(int n, float* x, float* y) {\n"
        "  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n  " +
            body + "\n}",
        true);
    std::vector<float> x(1024, 1), y(1024, 0);
    std::string said;
    const auto r = k->run(line_of_threads(blocks, threads), {of(1024), of(x), of(y)}, said);
    return r ? "" : r.error().message;
  };
  CHECK(said_of("x[0] += 1;", 1, 64) ==
        "kernel k: thread (1,0,0) of block (0,0,0) reads x[0], which thread (0,0,0) (test.lua:12) has written since "
        "the last barrier (test.lua:12)");
  CHECK(said_of("if (t == 0) x[0] += 1;", 4, 64) ==
        "kernel k: thread (0,0,0) of block (1,0,0) writes x[0], which a thread of another block (test.lua:12) has "
        "written (test.lua:12)");
  CHECK(said_of("if (t < 32) __syncthreads(); x[i] = 1;", 1, 64) ==
        "kernel k: thread (0,0,0) of block (0,0,0) waits at a __syncthreads() that thread (63,0,0) has gone past "
        "(test.lua:12)");
  CHECK(said_of("if (t >= 20) return; x[i] = 1; __syncthreads(); y[i] = x[19 - t];", 1, 64) == "");
  CHECK(said_of("x[i] = x[i + 1];", 1, 64).find("writes x[1], which thread") != std::string::npos);
  for (const char* right : {"atomicAdd(&x[0], 1.0f);", "x[i] = 2 * x[i]; y[i] += x[i];", "if (x[i] > 0) y[0] = 1;",
                            "x[i] = t; __syncthreads(); y[i] = x[i - t + 63 - t];", "y[i] = x[(i + 1) % n];"}) {
    INFO(right);
    CHECK(said_of(right, 4, 64) == "");
  }
}

TEST_CASE("a trusted kernel that was stopped runs again, with its constants", "[unit][apart]") {
  KernelOptions options;
  options.cache = apart_cache();
  options.apart = true;
  options.constants = {{"step", {3}}};
  const auto k = Kernel::compile(
      "__constant__ int step;\n"
      "__global__ void k(int n, int* x) { do x[0] += step; while (n); }",
      options);
  REQUIRE(k.ok());
  std::vector<int> x(1, 0);
  std::string said;
  const auto stopped = (*k)->run(line_of_threads(1, 1), {of(1), of(x)}, said, [] { return true; });
  REQUIRE_FALSE(stopped.ok());
  CHECK(stopped.error().kind == ErrorKind::cancelled);
  x[0] = 0;
  REQUIRE((*k)->run(line_of_threads(1, 1), {of(0), of(x)}, said).ok());
  CHECK(x[0] == 3);
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their runtimes need what is refused here
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
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
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
#endif

TEST_CASE("a confined compiler reads no file of the user and starts no program", "[unit][apart]") {
  const std::string secret = apart_cache() + "/../rille-secret-" + std::to_string(::getpid());
  std::ofstream(secret) << "#error the_secret_text\n";
  const auto include = compile_apart("#include \"" + secret + "\"\n__global__ void k() {}");
  REQUIRE_FALSE(include.ok());
  CHECK(include.error().summary().find("the_secret_text") == std::string::npos);
  const auto bytes = compile_apart("asm(\".incbin \\\"" + secret + "\\\"\");\n__global__ void k() {}");
  CHECK_FALSE(bytes.ok());
  for (const char* flag :
       {"-wrapper", "-fplugin=/tmp/x.so", "-Wl,-rpath,/", "-B/tmp", "@/etc/passwd", "-fmodule-mapper=|/usr/bin/true",
        "-fpass-plugin=/tmp/x.so", "-fuse-ld=gold", "-mllvm=-load=/tmp/x.so", "-fprofile-generate=/tmp/x",
        "-fsanitize=address", "-fno-plugin", "-f", "-m32"}) {
    const auto r = compile_apart("__global__ void k() {}", false, {flag});
    REQUIRE_FALSE(r.ok());
    CHECK(r.error().kind == ErrorKind::denied);
  }
  CHECK(compile_apart("__global__ void k() {}", false,
                      {"-O2", "-DN=3", "-ffast-math", "-fno-unroll-loops", "-march=native"})
            .ok());
  std::filesystem::remove(secret);
}

TEST_CASE("a compiler that takes long is ended with its run, and the programs that it has started", "[unit][apart]") {
  KernelOptions options;
  options.cache = apart_cache();
  options.apart = true;
  options.confined = true;
  int looks = 0;
  options.stopped = [&looks] { return ++looks > 5; };
  const auto k = Kernel::compile(long_to_compile, options);
  REQUIRE_FALSE(k);
  CHECK(k.error().kind == ErrorKind::cancelled);
  const auto left = [] {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline");
      const std::string words((std::istreambuf_iterator<char>(file)), {});
      if (words.find("cc1plus") != words.npos && words.find(apart_cache()) != words.npos) return true;
    }
    return false;
  };
  while (left()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a kernel apart takes no memory of any kind beyond its limit", "[unit][apart]") {
  const auto out = answers(R"x(
    out[0] = out[1] = 0;
    for (int i = 0; i < 64 && out[0] >= 0; ++i) out[0] = call(9, 0, 1L << 30, 3, 0x21, -1);  // shared, anonymous
    for (int i = 0; i < 64 && out[1] >= 0; ++i) {
      out[1] = call(9, 0, 1L << 30, 3, 0x22, -1);
      if (out[1] >= 0) call(10, out[1], 1L << 30, 1);  // read-only
    }
    out[2] = 1;)x",
                           3);
  CHECK(out[0] == -ENOMEM);
  CHECK(out[1] == -ENOMEM);
  CHECK(out[2] == 1);
  const auto k = made_apart(std::string(syscalls) + R"x(__global__ void k() {
    for (;;) {
      const long piece = call(9, 0, 1 << 20, 3, 0x21, -1);
      for (long at = 0; piece > 0 && at < 1 << 20; at += 4096) *(volatile char*)(piece + at) = 1;
    }
  })x");
  const Error e = ended_by(*k);
  CHECK(e.kind == ErrorKind::quota);
  CHECK(e.message.find("more than 1 GiB of memory") != std::string::npos);
}

// The pages between the arguments belong to no mapping once they are unmapped, and not to the resident memory.
TEST_CASE("a kernel apart keeps no memory between its arguments", "[unit][apart]") {
  constexpr int count = 24;  // 64 MiB beside each
  std::string parameters = "int64_t* p0";
  for (int i = 1; i < count; ++i) parameters += ", int64_t* p" + std::to_string(i);
  const auto k = made_apart(std::string(syscalls) + "__global__ void k(" + parameters + R"x() {
    const long piece = 16 << 20;
    for (long from = 0;; from += piece) {
      const long at = call(9, 0, piece, 3, 1, 4, from);
      for (long i = 0; i < piece; i += 4096) *(volatile char*)(at + i) = 1;  // at the end: nothing is there
      call(11, at, piece);
    }
  })x");
  std::vector<std::vector<long>> values(count, std::vector<long>(1));
  std::vector<LaunchArgument> arguments;
  for (auto& one : values) arguments.push_back(of(one));
  std::string said;
  const auto r = k->run(line_of_threads(1, 1), arguments, said);
  REQUIRE_FALSE(r.ok());
  INFO(r.error().message);
  CHECK(r.error().message.find("more than 1 GiB of memory") != std::string::npos);
}
#endif

TEST_CASE("what a confined compiler starts changes no file of the user, signals no process and leaves no group",
          "[unit][apart]") {
  const std::string secret = apart_cache() + "/../rille-secret-" + std::to_string(::getpid());
  std::ofstream(secret) << "secret";
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const std::string folder = apart_cache() + "/jail";
  std::filesystem::create_directories(folder);
  const auto before = std::filesystem::last_write_time(secret);
  const std::string script = R"x(
import ctypes, os
path, pid = ")x" + secret + R"x(", )x" +
                             std::to_string(::getpid()) + R"x(
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    if libc.syscall(*words) != 0:
        raise OSError
info = ctypes.create_string_buffer(128)
info[8] = 255  # si_code: queued
for name, attempt in dict(
        truncate=lambda: os.truncate(path, 0), open=lambda: open(path, "a"), chmod=lambda: os.chmod(path, 0o777),
        fchmodat2=lambda: call(452, -100, path.encode(), 0o777, 0), utime=lambda: os.utime(path, (0, 0)),
        chown=lambda: os.chown(path, os.getuid(), os.getgid()), xattr=lambda: os.setxattr(path, "user.x", b"1"),
        kill=lambda: os.kill(pid, 0), queue=lambda: call(297, pid, pid, 0, info),
        setsid=os.setsid, setpgid=lambda: os.setpgid(0, 0)).items():
    try:
        attempt()
        print(name)
    except OSError:
        pass
print("tried")
)x";
  std::ofstream(folder + "/try.py") << script;
  const std::string line =
      *kernel_program() + " compile " + folder + " -- /usr/bin/python3 -I " + folder + "/try.py 2>&1";
  FILE* const out = ::popen(line.c_str(), "r");
  REQUIRE(out);
  std::string said(1000, ' ');
  said.resize(std::fread(said.data(), 1, said.size(), out));
  ::pclose(out);
  CHECK(said == "tried\n");
  CHECK(std::filesystem::last_write_time(secret) == before);
  CHECK(std::filesystem::file_size(secret) == 6);
  std::filesystem::remove(secret);
}

TEST_CASE("a checked kernel has room around the copies of many arguments", "[unit][apart]") {
  std::string parameters;
  std::vector<std::vector<int>> tensors(16, std::vector<int>(1024));
  std::vector<LaunchArgument> arguments;
  for (auto& t : tensors) {
    parameters += (parameters.empty() ? "int* p" : ", int* p") + std::to_string(arguments.size());
    arguments.push_back(of(t));
  }
  const auto k = made_apart("__global__ void k(" + parameters + ") { p15[1023] = 5; }", true);
  std::string said;
  REQUIRE(k->run(line_of_threads(1, 1), arguments, said).ok());
  CHECK(tensors[15][1023] == 5);
}

TEST_CASE("a kernel apart that starts threads without end is ended", "[unit][apart]") {
  const auto k = made_apart(std::string(syscalls) + R"x(__global__ void k() {
    unsigned long t;
    long attributes[16];
    pthread_attr_init(attributes);
    pthread_attr_setstacksize(attributes, 16384);
    for (int i = 0; i < 3000; ++i) pthread_create(&t, attributes, wait, 0);
    for (;;) {}
  })x");
  const Error e = ended_by(*k);
  CHECK(e.kind == ErrorKind::quota);
  CHECK(e.message.find("threads") != std::string::npos);
}

TEST_CASE("what a kernel apart leaves computing ends its process", "[unit][apart]") {
  const auto k = made_apart(std::string(syscalls) + R"x(__global__ void k(int64_t* pid) {
    unsigned long t;
    pid[0] = call(39);
    pthread_create(&t, 0, work, 0);
  })x");
  std::vector<long> pid(1);
  std::string said;
  REQUIRE(k->run(line_of_threads(1, 1), {of(pid)}, said).ok());
  CHECK(gone(pid_t(pid[0])));
  const auto again = k->run(line_of_threads(1, 1), {of(pid)}, said);
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().message.find("gone on computing after its launch") != std::string::npos);
}

TEST_CASE("what a confined compiler has made is never loaded into this process", "[unit][apart]") {
  CHECK(kernel_key({"cpu", "text"}) == sha256_hex("3:cpu4:text"));
  const char* const source = "__global__ void twin(int* x) { x[0] = 7; }";
  REQUIRE_FALSE(made_apart(source)->cached());
  CHECK(made_apart(source)->cached());
  KernelOptions options;
  options.cache = apart_cache();
  options.file = "test.lua";
  options.line = 10;
  const auto here = Kernel::compile(source, options);
  REQUIRE(here.ok());
  CHECK_FALSE((*here)->cached());
  for (const auto& e : std::filesystem::directory_iterator(apart_cache() + "/apart"))
    CHECK_FALSE(std::filesystem::exists(apart_cache() + "/" + e.path().filename().string()) ==
                (e.path().extension() == ".so"));
}

TEST_CASE("a process that describes itself wrongly does not end this one", "[unit][apart]") {
  KernelOptions options;
  options.cache = apart_cache();
  options.apart = true;
  options.confined = true;
  options.defines = {{"SIZE", std::to_string(sizeof(apart::Loaded))}};
  options.constants = {{"c", {1}}};
  const std::string says = std::string(syscalls) + "static unsigned message[SIZE / 4];\n";
  const auto none = Kernel::compile(says + R"x(
    __attribute__((constructor)) static void lie() { call(44, 3, (long)message, SIZE, 0x4000); for (;;) call(34); }
    __constant__ float c;
    __global__ void k(float* x) { x[0] = c; })x",
                                    options);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().kind == ErrorKind::integrity);

  options.constants.clear();
  std::string many;
  for (int i = 0; i < 300; ++i) {
    options.constants.push_back({"c" + std::to_string(i), {1}});
    many += "__constant__ float c" + std::to_string(i) + ";\n";
  }
  const auto long_list = Kernel::compile(many + "__global__ void k(float* x) { x[0] = c1; }", options);
  REQUIRE_FALSE(long_list.ok());
  CHECK(long_list.error().message.find("300 constants; at most 256") != std::string::npos);

  options.constants.clear();
  options.defines = {{"SIZE", std::to_string(sizeof(apart::Ran))}};
  const auto k = Kernel::compile(says + R"x(
    __global__ void k() { message[2] = 1; call(44, 3, (long)message, SIZE, 0x4000); for (;;) {} })x",
                                 options);
  REQUIRE(k.ok());
  std::string said;
  const auto r = (*k)->run(line_of_threads(1, 1), {}, said);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == ErrorKind::integrity);
}

TEST_CASE("a program that reads a kernel's library reads no other file and reaches no network", "[unit][apart]") {
  const std::string library = apart_cache() + "/library", other = apart_cache() + "/other";
  std::ofstream(library) << "debug information";
  std::ofstream(other) << "secret";
  const auto shown = [&](const std::string& file) {
    Spawn what;
    what.argv = *confined_reader(library);
    what.argv.insert(what.argv.end(), {"/bin/cat", file});
    return output_of(std::move(what), 1);
  };
  CHECK(shown(library) == "debug information");
  CHECK(shown(other) == "");
  CHECK(shown("/etc/passwd") == "");
  const auto tried = [&](const std::string& command) {
    Spawn what;
    what.argv = *confined_reader(library);
    what.argv.insert(what.argv.end(), {"/bin/bash", "-c", command + " && echo reached; echo end"});
    return output_of(std::move(what), 1);
  };
  CHECK(tried("true") == "reached\nend\n");
  CHECK(tried("kill -0 " + std::to_string(::getpid())) == "end\n");
  CHECK(tried("exec 3<>/dev/udp/127.0.0.1/9").find("reached") == std::string::npos);
  Spawn endless;
  endless.argv = {"/bin/sleep", "1000"};
  CHECK(output_of(std::move(endless), 1, [] { return true; }) == "");
}

TEST_CASE("a confined compiler reads of the system what it needs, and writes no large file", "[unit][apart]") {
  for (const auto& e : std::filesystem::recursive_directory_iterator(
           "/usr/share", std::filesystem::directory_options::skip_permission_denied)) {
    if (e.is_symlink() || !e.is_regular_file()) continue;
    CAPTURE(e.path().string());
    CHECK_FALSE(compile_apart("asm(\".incbin \\\"" + e.path().string() + "\\\"\");\n__global__ void k() {}").ok());
    break;
  }
  CHECK(compile_apart("#include <vector>\n#include <omp.h>\n__global__ void k() {}").ok());
  CHECK_FALSE(
      compile_apart("asm(\".section .rodata\\n.fill 100000000,1,65\\n.previous\");\n__global__ void k() {}").ok());
}

TEST_CASE("what a confined kernel includes is sought in its folder alone, each file once", "[unit][apart]") {
  const std::string folder = apart_cache() + "/source", outside = apart_cache() + "/outside.h";
  std::filesystem::create_directories(folder + "/sub");
  std::ofstream(outside) << "// outside";
  std::ofstream(folder + "/a.h") << "#include \"sub/b.h\"\n";
  std::ofstream(folder + "/sub/b.h") << "#include \"../a.h\"\n#include \"../../outside.h\"\n// b";
  std::filesystem::create_symlink(outside, folder + "/link.h");
  KernelOptions options;
  options.apart = true;
  options.confined = true;
  options.folder = folder;
  const std::string again = "/proc/self/root" + folder + "/a.h";
  const auto found = included_files(
      "#include \"a.h\"\n#include \"" + again + "\"\n#include \"link.h\"\n#include \"" + outside + "\"\n", options);
  REQUIRE(found.ok());
  CHECK(found->find("// b") != std::string::npos);
  CHECK(found->find("#include \"sub/b.h\"") == found->rfind("#include \"sub/b.h\""));
  CHECK(found->find("// outside") == std::string::npos);
  std::string text;
  for (int i = 0; i < 18; ++i) {
    const std::string name = std::to_string(i) + ".h";
    std::ofstream(folder + "/" + name) << std::string(1 << 20, ' ');
    text += "#include \"" + name + "\"\n";
  }
  const auto large = included_files(text, options);
  REQUIRE_FALSE(large.ok());
  CHECK(large.error().message.find("more than 16 MB") != std::string::npos);
}

TEST_CASE("a cache with a limit of bytes drops the files that were used least recently", "[unit][apart]") {
  const KernelFiles files(apart_cache() + "/limited", 250);
  const auto work = files.work();
  REQUIRE(work.ok());
  for (const char* name : {"a.so", "b.so", "c.so"}) {
    std::ofstream(work->path() + "/made") << std::string(100, 'x');
    REQUIRE(files.put(work->path() + "/made", name).ok());
    std::filesystem::last_write_time(files.path_of(name),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours('d' - name[0]));
  }
  REQUIRE(files.put(files.path_of("c.so"), "c.so").ok());
  CHECK_FALSE(files.find("a.so"));
  CHECK(files.find("b.so"));
  CHECK(files.find("c.so"));
}

#ifndef __SANITIZE_THREAD__  // it knows no thread that starts after a fork of several
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
  CHECK(gone(pid_t(pid)));
}
#endif

}  // namespace rille::device
