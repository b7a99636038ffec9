#include "runtime/compute/device/kernel_fault.hpp"

#include <sys/mman.h>
#include <ucontext.h>

namespace rille::device {

constinit thread_local FaultGuard* volatile up_guard __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr int signals[] = {SIGFPE, SIGSEGV, SIGBUS, SIGILL};
constexpr std::size_t stack_bytes = 64 << 10;  // Linux saves up to 11 kB of AVX-512 and AMX registers on it
constexpr greg_t direction_flag = 0x400;

struct sigaction before[NSIG];

// Calls the handler that was installed before ours.
void hand_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& old = before[signal];
  if (old.sa_flags & SA_SIGINFO) return old.sa_sigaction(signal, info, context);
  if (old.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(signal);
  // Restore the default action: the faulting instruction runs again and ends the process; a sent signal is raised
  // again.
  struct sigaction ending {};
  ending.sa_handler = SIG_DFL;
  ::sigaction(signal, &ending, nullptr);
  if (info->si_code <= 0) ::raise(signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  FaultGuard* const guard = up_guard;
  if (!guard || info->si_code <= 0) return hand_on(signal, info, context);
  up_guard = nullptr;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  guard->fault = {signal, info->si_code, info->si_addr, reinterpret_cast<const void*>(registers[REG_RIP])};
  // Set the registers as switch_stack() to *home would. Returning from the handler restores the signal mask.
  void** const home = static_cast<void**>(*guard->home);
  registers[REG_RIP] = reinterpret_cast<greg_t>(*home);
  registers[REG_RSP] = reinterpret_cast<greg_t>(home + 1);
  registers[REG_R15] = reinterpret_cast<greg_t>(guard->worker);
  registers[REG_EFL] &= ~direction_flag;
}

// The signal stack of one OS thread.
class SignalStack {
 public:
  SignalStack() {
    stack_t has{};
    if (::sigaltstack(nullptr, &has) == 0 && !(has.ss_flags & SS_DISABLE)) {
      ready_ = true;  // a sanitizer or the embedding program has set one
      return;
    }
    memory_ = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) return;
    stack_t mine{};
    mine.ss_sp = memory_;
    mine.ss_size = stack_bytes;
    ready_ = ::sigaltstack(&mine, nullptr) == 0;
  }
  ~SignalStack() {
    if (memory_ == MAP_FAILED) return;
    stack_t has{};
    if (::sigaltstack(nullptr, &has) == 0 && has.ss_sp == memory_) {
      stack_t none{};
      none.ss_flags = SS_DISABLE;
      ::sigaltstack(&none, nullptr);
    }
    ::munmap(memory_, stack_bytes);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;
  bool ready() const { return ready_; }

 private:
  void* memory_ = MAP_FAILED;
  bool ready_ = false;
};

bool install() {
  for (const int signal : signals) {
    if (::sigaction(signal, nullptr, &before[signal]) != 0) return false;
    struct sigaction mine = before[signal];  // keeps the earlier handler's mask, since we may call that handler
    mine.sa_sigaction = on_fault;
    mine.sa_flags = (mine.sa_flags & SA_NODEFER) | SA_SIGINFO | SA_ONSTACK;
    if (::sigaction(signal, &mine, nullptr) != 0) return false;
  }
  return true;
}

}  // namespace

bool prepare_for_faults() {
  static const bool installed = install();
  thread_local const SignalStack stack;
  return installed && stack.ready();
}

}  // namespace rille::device
