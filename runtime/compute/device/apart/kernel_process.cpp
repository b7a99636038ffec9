#include "runtime/compute/device/apart/kernel_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "runtime/compute/device/apart/confined.hpp"
#include "runtime/compute/device/apart/guard.hpp"
#include "runtime/compute/device/apart/kernel_child.hpp"
#include "runtime/compute/device/apart/messages.hpp"
#include "runtime/compute/device/kernel_ranges.hpp"
#include "runtime/compute/device/processor_clock.hpp"
#include "runtime/core/loop/spawn.hpp"

namespace rille::device {

namespace {

constexpr int load_limit_ms = 10'000, look_every_ms = 10;

std::atomic<int> confined_processes{0}, trusted_processes{0};

std::atomic<int>& processes(bool confined) { return confined ? confined_processes : trusted_processes; }

// Memory and address space that a launch needs besides kernel_memory_bytes.
struct Needed {
  std::int64_t memory_bytes = 0, address_bytes = 0;
};

Needed needed_for(const apart::Launch& ask, ArgumentRanges& ranges, bool checked) {
  Needed needed;
  needed.memory_bytes = std::int64_t(said_bytes_max);
  std::int64_t copies = 0;
  for (const auto& r : ranges.list()) {
    needed.memory_bytes += std::int64_t((checked ? 2 : 1) * r.bytes + 2 * apart::page_bytes);
    if (checked) copies += std::int64_t(r.bytes + 2 * gap_bytes);
  }
  const std::int64_t threads = ask.cooperative ? std::int64_t(ask.grid[0]) * ask.grid[1] * ask.grid[2] : 0;
  needed.address_bytes = std::int64_t(ask.memory_bytes) + copies + threads * kernel_thread_bytes;
  return needed;
}

template <std::size_t n>
std::string text_of(const char (&from)[n]) {
  return std::string(from, ::strnlen(from, n));
}

// Whether an honest process could give this answer. The offset's range leaves room for later multiplication and
// negation.
bool sound(const apart::Ran& ran, std::size_t parameters) {
  const auto kind = Violation::Kind(ran.kind);
  const bool of_argument = kind == Violation::Kind::outside || kind == Violation::Kind::writes_constant ||
                           kind == Violation::Kind::beyond || kind == Violation::Kind::global_race;
  const bool in_range = ran.parameter < parameters && std::abs(ran.offset_bytes / 2) < (std::int64_t{1} << 61);
  return ran.kind <= unsigned(Violation::Kind::stack) && (!of_argument || in_range);
}

void take_violation(const apart::Ran& ran, Violation& v, KernelProcess::Texts& texts) {
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
}

bool known(const rille_abi::Parameter& p) {
  const bool vector = p.lanes >= 1 && p.lanes <= 4;
  return p.pointer <= 1 && p.constant <= 1 && p.element <= rille_abi::nothing && vector && p.size <= (1u << 20);
}

}  // namespace

Result<std::unique_ptr<KernelProcess>> KernelProcess::start(const std::string& name, const std::string& library,
                                                            const KernelOptions& options) {
  std::unique_ptr<KernelProcess> p(new KernelProcess(name, library, options));
  const int most = options.confined ? confined_max : trusted_max;
  if (processes(options.confined).fetch_add(1) >= most) {
    return make_error(ErrorKind::quota,
                      fmt::format("kernel {}: there are {} kernels in processes of their own already", name, most),
                      "make a kernel once and launch it often; a kernel ends when no variable refers to it any more");
  }
  RILLE_CHECK(p->begin(options));
  return p;
}

KernelProcess::KernelProcess(std::string name, std::string library, const KernelOptions& options)
    : name_(std::move(name)), library_(std::move(library)), options_(options) {}

KernelProcess::~KernelProcess() {
  end_child();
  // What the process has computed outside of launches, or after the last look at a launch that was stopped.
  if (options_.computed && used_ns_ > counted_ns_) options_.computed(used_ns_ - counted_ns_);
  if (socket_ >= 0) ::close(socket_);
  if (memory_ >= 0) ::close(memory_);
  processes(options_.confined).fetch_sub(1);
}

// Counts the processor time of loading, because code of the kernel may run then.
Result<> KernelProcess::await_loaded(apart::Loaded& loaded, const KernelOptions& options) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(load_limit_ms);
  bool late = false;
  const auto count = [&] {
    const std::int64_t now_ns = child_->processor_ns();
    if (!options_.computed || now_ns <= counted_ns_) return;
    options_.computed(now_ns - counted_ns_);
    counted_ns_ = now_ns;
  };
  auto told = receive(&loaded, sizeof loaded, [&] {
    count();
    late = std::chrono::steady_clock::now() > until;
    return late || (options.stopped && options.stopped());
  });
  if (told) count();
  if (!late) return told;
  return make_error(ErrorKind::timeout,
                    fmt::format("kernel {}: its process did not start within {} s", name_, load_limit_ms / 1000));
}

// The process has ended, because a launch was stopped or crashed in a way that could not be caught.
Result<> KernelProcess::begin_again() {
  if (options_.confined || ::access(library_.c_str(), R_OK) != 0) return ended();
  for (int* const fd : {&socket_, &memory_}) ::close(std::exchange(*fd, -1));
  if (options_.computed && used_ns_ > counted_ns_) options_.computed(used_ns_ - counted_ns_);
  counted_ns_ = used_ns_ = 0;
  parameters_.clear();
  symbols_.clear();
  KernelOptions options = options_;
  options.stopped = {};  // it tells of the entry that made the kernel
  RILLE_CHECK(begin(options));
  for (const auto& [symbol, bytes] : constants_) RILLE_CHECK(send_constant(symbol, bytes));
  return success();
}

Result<> KernelProcess::begin(const KernelOptions& options) {
  RILLE_TRY(const std::string program, kernel_program());
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error("cannot make a socket for the kernel", name_, errno);
  socket_ = ends[0];
  const timeval patience{load_limit_ms / 1000, 0};  // the process may leave messages unread
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  memory_ = ::memfd_create("rille-kernel", MFD_CLOEXEC);
  // made by a compiler, which may be hostile
  const int file = ::open(library_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  Spawn what;
  what.argv = {program, "run", name_, options.checked ? "checked" : "unchecked",
               options.confined ? "confined" : "trusted"};
  what.without = environment_without({"OMP_NUM_THREADS"});
  what.directory = "/";
  what.files = {{ends[1], apart::socket_fd}, {memory_, apart::memory_fd}, {file, apart::library_fd}};
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {0, 1, 2}) what.files.push_back({nothing, standard});
  what.die_with_us = true;
  what.session = true;  // Ctrl-C at the terminal is for the runner
  const int failed = errno;
  if (memory_ >= 0 && file >= 0 && nothing >= 0)
    child_ = std::make_unique<KernelChild>(std::move(what), options.confined, memory_);
  for (const int fd : {ends[1], file, nothing})
    if (fd >= 0) ::close(fd);
  if (!child_) return errno_error("cannot start the process of the kernel", name_, failed);
  if (const Error* e = child_->failure()) return *e;
  apart::Loaded loaded;
  RILLE_CHECK(await_loaded(loaded, options));
  if (loaded.failed) {
    Error e = make_error(ErrorKind::device, text_of(loaded.message), text_of(loaded.hint));
    for (const auto kind : {ErrorKind::invalid, ErrorKind::integrity})
      if (loaded.error_kind == int(kind)) e.kind = kind;
    e.code = text_of(loaded.code);
    return e;
  }
  bool right = loaded.parameters <= rille_abi::parameters_max && loaded.symbols == options.constants.size();
  for (unsigned i = 0; right && i < loaded.parameters; ++i) {
    parameters_.push_back(loaded.parameter[i]);
    right = known(parameters_.back());
  }
  for (unsigned i = 0; right && i < loaded.symbols; ++i) {
    symbols_.push_back({nullptr, nullptr, loaded.symbol[i].bytes, loaded.symbol[i].element});
  }
  child_->rest();
  if (right) return success();
  return make_error(ErrorKind::integrity,
                    fmt::format("kernel {}: its process sent an invalid description of the kernel", name_));
}

void KernelProcess::end_child() {
  if (!child_) return;
  child_->end();
  used_ns_ = child_->processor_ns();
  child_.reset();
}

Error KernelProcess::ended() {
  const int status = child_ ? child_->end() : 0;
  const std::string why = child_ ? child_->why() : "";
  end_child();
  if (!why.empty())
    return make_error(ErrorKind::quota, fmt::format("kernel {}: the process that runs it was ended: {}", name_, why));
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
    child_->look();
    if (!stopped || !stopped()) continue;
    end_child();
    return make_error(ErrorKind::cancelled, fmt::format("kernel {}: stopped, with the process that ran it", name_));
  }
  ssize_t got;
  while ((got = ::recv(socket_, message, bytes, MSG_TRUNC)) < 0 && errno == EINTR) {}
  if (got == ssize_t(bytes)) return success();
  if (got <= 0) return ended();
  end_child();
  return make_error(ErrorKind::integrity,
                    fmt::format("kernel {}: its process sent {} bytes, expected {}", name_, got, bytes));
}

Result<> KernelProcess::set_constant(std::size_t symbol, const std::vector<std::byte>& bytes) {
  constants_.emplace_back(symbol, bytes);
  return send_constant(symbol, bytes);
}

Result<> KernelProcess::send_constant(std::size_t symbol, const std::vector<std::byte>& bytes) {
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

Result<> KernelProcess::put_arguments(const apart::Launch& ask, const ArgumentRanges& ranges) {
  if (::ftruncate(memory_, off_t(ask.memory_bytes)) != 0)
    return errno_error("no memory for the arguments of the kernel", name_, errno);
  for (const auto& r : ranges.list()) {
    for (std::size_t done = 0; done < r.bytes;) {
      const ssize_t n = ::pwrite(memory_, r.from + done, r.bytes - done, off_t(r.copy + done));
      if (n <= 0) return errno_error("no memory for the arguments of the kernel", name_, n < 0 ? errno : ENOSPC);
      done += std::size_t(n);
    }
  }
  return success();
}

Result<> KernelProcess::run(const LaunchShape& shape, const std::vector<LaunchArgument>& arguments,
                            const std::function<bool()>& stopped, RunReport& report, Texts& texts) {
  if (!child_) RILLE_CHECK(begin_again());
  ArgumentRanges ranges(parameters_, arguments);
  apart::Launch ask;
  ask.memory_bytes = apart::place_ranges(ranges) + said_bytes_max;
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
  const Needed needed = needed_for(ask, ranges, options_.checked);
  RILLE_CHECK(put_arguments(ask, ranges));
  child_->launch(needed.memory_bytes, needed.address_bytes);
  ProcessorClock::Also clock(child_->clock(), counted_ns_);
  if (::send(socket_, &ask, sizeof ask, MSG_NOSIGNAL) != ssize_t(sizeof ask)) return ended();
  apart::Ran ran;
  RILLE_CHECK(receive(&ran, sizeof ran, [&] {
    clock.look();
    return stopped && stopped();
  }));
  child_->rest();
  for (const auto& r : ranges.list())
    if (r.written) RILLE_CHECK(read_memory(r.copy, r.from, r.bytes));
  report.said.resize(std::min<std::size_t>(ran.said_bytes, said_bytes_max));
  RILLE_CHECK(read_memory(ask.memory_bytes - said_bytes_max, report.said.data(), report.said.size()));
  if (::ftruncate(memory_, 0) != 0) return errno_error("cannot free memory of the kernel", name_, errno);
  report.out_of_memory = ran.out_of_memory != 0;
  if (!sound(ran, parameters_.size()))
    return make_error(ErrorKind::integrity, fmt::format("kernel {}: its process sent an invalid report", name_));
  take_violation(ran, report.violation, texts);
  return success();
}

}  // namespace rille::device
