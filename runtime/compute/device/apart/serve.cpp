#include "runtime/compute/device/apart/serve.hpp"

#include <fcntl.h>
#include <omp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/compute/device/apart/confine.hpp"
#include "runtime/compute/device/apart/guard.hpp"
#include "runtime/compute/device/apart/kernel_child.hpp"
#include "runtime/compute/device/apart/messages.hpp"
#include "runtime/compute/device/kernel.hpp"
#include "runtime/compute/device/kernel_library.hpp"

namespace rille::device::apart {

namespace {

constexpr std::int64_t compiler_bytes_max = std::int64_t{2} << 30;
constexpr std::int64_t compiler_file_bytes_max = 64 << 20, reader_bytes_max = std::int64_t{1} << 30;
constexpr int compiler_processor_s = 60, reader_processor_s = 5;

template <std::size_t n>
void put_text(char (&to)[n], std::string_view text) {
  std::memcpy(to, text.data(), std::min(text.size(), n - 1));
}

template <class T>
bool send(const T& message) {
  return ::send(socket_fd, &message, sizeof message, MSG_NOSIGNAL) == ssize_t(sizeof message);
}

Loaded failure(const Error& e) {
  Loaded out;
  out.failed = 1;
  out.error_kind = int(e.kind);
  put_text(out.code, e.code);
  put_text(out.message, e.message);
  put_text(out.hint, e.hint);
  return out;
}

// A soft limit, because the runner raises it for each launch (kernel_child.hpp).
bool limit_address_space() {
  long pages = 0;
  std::FILE* const own = std::fopen("/proc/self/statm", "r");
  const bool read = own && std::fscanf(own, "%ld", &pages) == 1;
  if (own) std::fclose(own);
  rlimit now{};
  if (!read || ::getrlimit(RLIMIT_AS, &now) != 0) return false;
  const std::int64_t most =
      pages * ::sysconf(_SC_PAGESIZE) + kernel_memory_bytes + omp_get_max_threads() * kernel_thread_bytes;
  now.rlim_cur = std::min(rlim_t(most), now.rlim_max);
  return ::setrlimit(RLIMIT_AS, &now) == 0;
}

Result<LoadedLibrary> load(const std::string& name, bool confined) {
  const std::string library = "/proc/self/fd/" + std::to_string(library_fd);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // the sanitizers' runtimes need more system calls
  if (confined) {
    Confinement what;
    what.read = {library};
    if (!limit_address_space()) return errno_error("cannot limit the memory of", "a kernel's process", errno);
    RILLE_CHECK(confine(what));
    RILLE_CHECK(drop_system_calls());
  }
#endif
  return load_library(library, name);
}

Loaded describe_library(const rille_abi::Kernel& k) {
  Loaded out;
  out.parameters = k.parameters;
  std::copy_n(k.parameter, k.parameters, out.parameter);
  out.symbols = std::min(k.symbols, symbols_max);
  for (unsigned i = 0; i < out.symbols; ++i) out.symbol[i] = {k.symbol[i].bytes, k.symbol[i].element};
  return out;
}

Ran run(const rille_abi::Kernel& k, bool checked, const Launch& asked, RunnerPool& pool) {
  Ran out;
  void* m = ::mmap(nullptr, asked.memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
  if (m == MAP_FAILED) {
    out.out_of_memory = 1;
    return out;
  }
  auto* memory = static_cast<std::byte*>(m);
  Guard guard(memory, asked);
  LaunchShape shape;
  std::copy_n(asked.grid, 3, shape.grid);
  std::copy_n(asked.block, 3, shape.block);
  shape.shared_bytes = asked.shared_bytes;
  shape.cooperative = asked.cooperative != 0;
  std::vector<LaunchArgument> arguments(asked.arguments);
  for (unsigned i = 0; i < asked.arguments; ++i) {
    const auto& a = asked.argument[i];
    if (a.bytes) arguments[i].pointer = memory + a.offset;
    arguments[i].bytes = a.bytes;
    std::copy_n(a.value, sizeof a.value, arguments[i].value);
  }
  const std::vector<rille_abi::Parameter> parameters(k.parameter, k.parameter + k.parameters);
  RunReport report;
  run_loaded(k, parameters, checked, shape, arguments, pool, report);
  guard.look(report.violation);
  out.out_of_memory = report.out_of_memory;
  out.said_bytes = unsigned(std::min(report.said.size(), said_bytes_max));
  std::memcpy(memory + asked.memory_bytes - said_bytes_max, report.said.data(), out.said_bytes);
  const Violation& v = report.violation;
  out.kind = unsigned(v.kind);
  out.block = v.block;
  out.thread = v.thread;
  out.other_thread = v.other_thread;
  out.parameter = v.parameter;
  out.access = v.access;
  out.other_access = v.other_access;
  out.bytes = v.bytes;
  out.line = v.line;
  out.offset_bytes = v.offset_bytes;
  out.site = std::uintptr_t(v.site);
  out.other_site = std::uintptr_t(v.other_site);
  out.number = v.number;
  if (v.text) put_text(out.text, v.text);
  if (v.file) put_text(out.file, v.file);
  ::munmap(m, asked.memory_bytes);
  return out;
}

int serve_kernel(const std::string& name, bool checked, bool confined) {
  auto loaded = load(name, confined);
  if (!loaded) return send(failure(loaded.error())) ? 1 : 2;
  const rille_abi::Kernel& kernel = *loaded->kernel;
  if (!send(describe_library(kernel))) return 2;
  RunnerPool pool;
  union {
    Ask ask;
    SetConstant constant;
    Launch launch;
  } asked{};
  for (;;) {
    const ssize_t n = ::recv(socket_fd, &asked, sizeof asked, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < ssize_t(sizeof(Ask))) return n == 0 ? 0 : 2;  // 0: the runner has ended the kernel
    if (asked.ask == Ask::constant) {
      std::memcpy(kernel.symbol[asked.constant.index].at, asked.constant.value, asked.constant.bytes);
    } else if (!send(run(kernel, checked, asked.launch, pool))) {
      return 2;
    }
  }
}

int say(const std::string& text) {
  const std::string line = "rille-kernel: " + text + "\n";
  return ::write(2, line.data(), line.size()) < 0 ? 127 : 126;
}

// Confines this process by the words before "--", then becomes the program behind it.
int become(Confinement what, char** argv) {
  what.read = {"/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec",     "/lib",
               "/lib32",   "/lib64",   "/bin",       "/nix/store", "/etc/ld.so.cache", "/dev/null"};
  for (; *argv && std::string_view(*argv) != "--"; ++argv) what.read.emplace_back(*argv);
  if (!*argv || !argv[1]) return say("no program is named");
  auto done = confine(what);
  if (done) done = drop_calls_beyond_files();
  if (!done) return say(done.error().message);
  ::execv(argv[1], argv + 1);
  return say("cannot execute " + std::string(argv[1]));
}

int compile(char** argv) {
  Confinement what;
  what.write = {argv[0], "/dev/null"};
  what.memory_bytes = compiler_bytes_max;
  what.file_bytes = compiler_file_bytes_max;
  what.processor_s = compiler_processor_s;
  return become(std::move(what), argv + 1);
}

int read(char** argv) {
  Confinement what;
  what.address_bytes = reader_bytes_max;
  what.processor_s = reader_processor_s;
  return become(std::move(what), argv);
}

}  // namespace

int serve(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "run" && argc == 5)
    return serve_kernel(argv[2], std::string_view(argv[3]) == "checked", std::string_view(argv[4]) == "confined");
  if (verb == "compile" && argc > 4) return compile(argv + 2);
  if (verb == "read" && argc > 4) return read(argv + 2);
  return say("started by Rille for kernels in processes of their own; it has no use of its own");
}

}  // namespace rille::device::apart
