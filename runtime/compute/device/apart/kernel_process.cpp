#include "runtime/compute/device/apart/kernel_process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "runtime/compute/device/apart/messages.hpp"
#include "runtime/compute/device/kernel_ranges.hpp"
#include "runtime/core/loop/spawn.hpp"

extern char** environ;

namespace rille::device {

namespace {

constexpr int load_limit_ms = 10'000, look_every_ms = 10;
constexpr std::size_t page_bytes = 4096;

std::atomic<int> processes{0};

std::string folder_of(std::string path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash);
}

std::string own_path() {  // of the library or program that contains this code
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_path), &info) == 0 || !info.dli_fname) return "";
  char path[PATH_MAX];  // the name may be relative, as LD_LIBRARY_PATH is
  return ::realpath(info.dli_fname, path) ? path : "";
}

std::string program_path() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, n > 0 ? std::size_t(n) : 0);
}

// Beside the library or the program, or where an installation has it.
Result<std::string> kernel_program() {
  for (const auto& path : {own_path(), program_path()}) {
    for (const char* place : {"", "/../libexec/rille", "/../../libexec/rille"}) {
      const std::string file = folder_of(path) + place + "/rille-kernel";
      if (!path.empty() && ::access(file.c_str(), X_OK) == 0) return file;
    }
  }
  return make_error(ErrorKind::device, "the program rille-kernel, which runs kernels under limits, is not installed",
                    fmt::format("it belongs into {}, or beside librille", folder_of(program_path())));
}

template <std::size_t n>
std::string text_of(const char (&from)[n]) {
  return std::string(from, ::strnlen(from, n));
}

bool known(const rille_abi::Parameter& p) {
  const bool vector = p.lanes >= 1 && p.lanes <= 4;
  return p.pointer <= 1 && p.constant <= 1 && p.element <= rille_abi::nothing && vector && p.size <= (1u << 20);
}

}  // namespace

// The process itself. A thread starts and outlives it, since the system ends it with the thread that started it: so it
// ends also where this process is killed.
class KernelProcess::Child {
 public:
  explicit Child(Spawn what) {
    thread_ = std::thread([this, what = std::move(what)] { keep(what); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return started_; });
  }
  ~Child() { end(); }

  const Error* failure() const { return failure_ ? &*failure_ : nullptr; }
  // Ends the process, if it has not ended by itself. Returns its exit status.
  int end() {
    if (!thread_.joinable()) return status_;
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
    return status_;
  }

 private:
  void keep(const Spawn& what) {
    auto child = spawn(what);
    std::unique_lock lock(mutex_);
    if (!child) failure_ = std::move(child).error();
    started_ = true;
    changed_.notify_all();
    if (failure_) return;
    changed_.wait(lock, [&] { return over_; });
    ::kill(*child, SIGKILL);
    while (::waitpid(*child, &status_, 0) < 0 && errno == EINTR) {}
  }

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false, over_ = false;
  int status_ = 0;
  std::optional<Error> failure_;
};

Result<std::unique_ptr<KernelProcess>> KernelProcess::start(const std::string& name, const std::string& library,
                                                            bool checked) {
  std::unique_ptr<KernelProcess> p(new KernelProcess(name));
  if (processes.fetch_add(1) >= processes_max) {
    return make_error(ErrorKind::quota,
                      fmt::format("kernel {}: there are {} kernels under limits already", name, processes_max),
                      "make a kernel once and launch it often; those that nothing refers to end");
  }
  RILLE_CHECK(p->begin(library, checked));
  return p;
}

KernelProcess::KernelProcess(std::string name) : name_(std::move(name)) {}

KernelProcess::~KernelProcess() {
  child_.reset();
  if (socket_ >= 0) ::close(socket_);
  if (memory_ >= 0) ::close(memory_);
  processes.fetch_sub(1);
}

Result<> KernelProcess::begin(const std::string& library, bool checked) {
  RILLE_TRY(const std::string program, kernel_program());
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error("cannot make a socket for the kernel", name_, errno);
  socket_ = ends[0];
  memory_ = ::memfd_create("rille-kernel", MFD_CLOEXEC);
  const int file = ::open(library.c_str(), O_RDONLY | O_CLOEXEC);
  Spawn what;
  what.argv = {program, "run", name_, checked ? "checked" : "unchecked"};
  what.without = environment_without({"OMP_NUM_THREADS"});
  what.directory = "/";
  what.files = {{ends[1], apart::socket_fd}, {memory_, apart::memory_fd}, {file, apart::library_fd}};
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {0, 1, 2}) what.files.push_back({nothing, standard});
  what.die_with_us = true;
  const int failed = errno;
  if (memory_ >= 0 && file >= 0 && nothing >= 0) child_ = std::make_unique<Child>(std::move(what));
  for (const int fd : {ends[1], file, nothing})
    if (fd >= 0) ::close(fd);
  if (!child_) return errno_error("cannot start the process of the kernel", name_, failed);
  if (const Error* e = child_->failure()) return *e;
  apart::Loaded loaded;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(load_limit_ms);
  if (auto told = receive(&loaded, sizeof loaded, [&] { return std::chrono::steady_clock::now() > until; }); !told) {
    if (told.error().kind != ErrorKind::cancelled) return told;
    return make_error(ErrorKind::timeout,
                      fmt::format("kernel {}: its process has not begun in {} s", name_, load_limit_ms / 1000));
  }
  if (loaded.failed) {
    Error e = make_error(ErrorKind::device, text_of(loaded.message), text_of(loaded.hint));
    for (const auto kind : {ErrorKind::invalid, ErrorKind::integrity})
      if (loaded.error_kind == int(kind)) e.kind = kind;
    e.code = text_of(loaded.code);
    return e;
  }
  bool right = loaded.parameters <= rille_abi::parameters_max && loaded.symbols <= apart::symbols_max;
  for (unsigned i = 0; right && i < loaded.parameters; ++i) {
    parameters_.push_back(loaded.parameter[i]);
    right = known(parameters_.back());
  }
  for (unsigned i = 0; right && i < loaded.symbols; ++i) {
    symbols_.push_back({nullptr, nullptr, loaded.symbol[i].bytes, loaded.symbol[i].element});
  }
  if (right) return success();
  return make_error(ErrorKind::integrity, fmt::format("kernel {}: its process describes it wrongly", name_));
}

Error KernelProcess::ended() {
  const int status = child_ ? child_->end() : 0;
  child_.reset();
  std::string how = "has ended";
  if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) how += fmt::format(" by signal {}", WTERMSIG(status));
  else if (WIFEXITED(status) && WEXITSTATUS(status)) how += fmt::format(" with status {}", WEXITSTATUS(status));
  Error e = make_error(ErrorKind::device, fmt::format("kernel {}: the process that runs it {}", name_, how),
                       "make the kernel again; with checked = true it names a wrong access");
  e.code = "kernel_check";
  return e;
}

Result<> KernelProcess::receive(void* message, std::size_t bytes, const std::function<bool()>& stopped) {
  for (;;) {
    pollfd wait{socket_, POLLIN, 0};
    const int n = ::poll(&wait, 1, look_every_ms);
    if (n < 0 && errno != EINTR) return errno_error("cannot wait for the kernel", name_, errno);
    if (n > 0) break;
    if (!stopped || !stopped()) continue;
    child_.reset();
    return make_error(ErrorKind::cancelled, fmt::format("kernel {}: stopped, with the process that ran it", name_));
  }
  ssize_t got;
  while ((got = ::recv(socket_, message, bytes, MSG_TRUNC)) < 0 && errno == EINTR) {}
  if (got == ssize_t(bytes)) return success();
  if (got <= 0) return ended();
  child_.reset();
  return make_error(ErrorKind::integrity,
                    fmt::format("kernel {}: its process answers {} bytes, not {}", name_, got, bytes));
}

Result<> KernelProcess::set_constant(std::size_t symbol, const std::vector<std::byte>& bytes) {
  auto message = std::make_unique<apart::SetConstant>();
  if (bytes.size() > sizeof message->value) {
    return make_error(
        ErrorKind::invalid,
        fmt::format("kernel {}: a constant of {} bytes; at most {}", name_, bytes.size(), sizeof message->value),
        "pass it as a tensor");
  }
  message->index = unsigned(symbol);
  message->bytes = unsigned(bytes.size());
  std::memcpy(message->value, bytes.data(), bytes.size());
  if (::send(socket_, message.get(), sizeof *message, MSG_NOSIGNAL) != ssize_t(sizeof *message)) return ended();
  return success();
}

Result<> KernelProcess::read_memory(std::size_t at, void* to, std::size_t bytes) const {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::pread(memory_, static_cast<std::byte*>(to) + done, bytes - done, off_t(at + done));
    if (n <= 0) return errno_error("cannot read what the kernel has written", name_, n < 0 ? errno : EIO);
    done += std::size_t(n);
  }
  return success();
}

Result<> KernelProcess::run(const LaunchShape& shape, const std::vector<LaunchArgument>& arguments,
                            const std::function<bool()>& stopped, RunReport& report, Texts& texts) {
  if (!child_) return ended();
  ArgumentRanges ranges(parameters_, arguments);
  std::size_t total = 0;
  for (auto& r : ranges.list()) {
    // The copy lies on its page as the argument does: what was aligned stays aligned.
    r.copy = total + std::uintptr_t(r.from) % page_bytes;
    total = (r.copy + r.bytes + page_bytes - 1) / page_bytes * page_bytes;
  }
  apart::Launch ask;
  ask.memory_bytes = total + said_bytes_max;
  ask.shared_bytes = shape.shared_bytes;
  ask.cooperative = shape.cooperative;
  std::memcpy(ask.grid, shape.grid, sizeof ask.grid);
  std::memcpy(ask.block, shape.block, sizeof ask.block);
  ask.arguments = unsigned(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::memcpy(ask.argument[i].value, arguments[i].value, sizeof ask.argument[i].value);
    if (!parameters_[i].pointer || !arguments[i].pointer || !arguments[i].bytes) continue;
    ask.argument[i].offset = ranges.copy_of(arguments[i].pointer);
    ask.argument[i].bytes = arguments[i].bytes;
  }
  if (::ftruncate(memory_, off_t(ask.memory_bytes)) != 0)
    return errno_error("no memory for the arguments of the kernel", name_, errno);
  for (const auto& r : ranges.list()) {
    for (std::size_t done = 0; done < r.bytes;) {
      const ssize_t n = ::pwrite(memory_, r.from + done, r.bytes - done, off_t(r.copy + done));
      if (n <= 0) return errno_error("no memory for the arguments of the kernel", name_, n < 0 ? errno : ENOSPC);
      done += std::size_t(n);
    }
  }
  if (::send(socket_, &ask, sizeof ask, MSG_NOSIGNAL) != ssize_t(sizeof ask)) return ended();
  apart::Ran ran;
  RILLE_CHECK(receive(&ran, sizeof ran, stopped));
  for (const auto& r : ranges.list())
    if (r.written) RILLE_CHECK(read_memory(r.copy, r.from, r.bytes));
  report.said.resize(std::min<std::size_t>(ran.said_bytes, said_bytes_max));
  RILLE_CHECK(read_memory(ask.memory_bytes - said_bytes_max, report.said.data(), report.said.size()));
  if (::ftruncate(memory_, 0) != 0) return errno_error("cannot free memory of the kernel", name_, errno);
  report.out_of_memory = ran.out_of_memory != 0;
  if (ran.kind > unsigned(Violation::Kind::stack) || (ran.kind && ran.parameter >= std::max(parameters_.size(), 1ul)))
    return make_error(ErrorKind::integrity, fmt::format("kernel {}: its process reports nonsense", name_));
  Violation& v = report.violation;
  v.kind = Violation::Kind(ran.kind);
  v.block = ran.block;
  v.thread = ran.thread;
  v.other_thread = ran.other_thread;
  v.parameter = ran.parameter;
  v.access = ran.access;
  v.other_access = ran.other_access;
  v.bytes = ran.bytes;
  v.line = ran.line;
  v.offset_bytes = ran.offset_bytes;
  v.site = reinterpret_cast<const void*>(ran.site);
  v.other_site = reinterpret_cast<const void*>(ran.other_site);
  v.number = ran.number;
  texts = {text_of(ran.text), text_of(ran.file)};
  v.text = texts.text.c_str();
  if (!texts.file.empty()) v.file = texts.file.c_str();
  return success();
}

Result<std::vector<std::string>> confined_compiler(const std::string& folder,
                                                   const std::vector<std::string>& readable) {
  RILLE_TRY(const std::string program, kernel_program());
  std::vector<std::string> words = {program, "compile", folder};
  words.insert(words.end(), readable.begin(), readable.end());
  words.emplace_back("--");
  return words;
}

std::vector<std::string> environment_without(std::initializer_list<std::string_view> kept) {
  std::vector<std::string> names;
  for (char** e = environ; e && *e; ++e) {
    const std::string_view entry(*e), name = entry.substr(0, entry.find('='));
    if (std::find(kept.begin(), kept.end(), name) == kept.end()) names.emplace_back(name);
  }
  return names;
}

}  // namespace rille::device
