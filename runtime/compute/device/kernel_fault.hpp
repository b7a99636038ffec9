// If a kernel divides an integer by zero or accesses unmapped memory, the launch fails with an error that says what
// happened and where; the process and the run continue.
//
// While a thread runs a kernel, a handler for SIGFPE, SIGSEGV, SIGBUS and SIGILL continues where that thread left for
// the kernel's stack, as after a failed assert, and abandons the kernel's stack. Nothing on it needs unwinding: it has
// only frames of the kernel, which is compiled without exceptions, and of BlockRunner's functions, which hold no lock
// and own nothing while the guard is set. Where they do, they clear it (Unguarded).
//
// Other faults and sent signals go to the handler installed before. Our handlers are installed at the process's first
// launch and stay. They run on a signal stack: the thread's own (sigaltstack) if it has one, else one made at its first
// launch.
#pragma once

#include <csignal>
#include <cstdint>

namespace rille::device {

struct Fault {
  int signal = 0;              // 0: none
  int code = 0;                // of siginfo: FPE_INTDIV
  const void* at = nullptr;    // the accessed address
  const void* site = nullptr;  // address of the instruction
};

// Where to continue, as stored by switch_stack() (fiber_stack.hpp).
struct FaultGuard {
  void* const* home = nullptr;  // where the stack pointer is stored
  void* worker = nullptr;       // for r15
  Fault fault;
};

// Call before a thread's first kernel: installs handlers and the signal stack. False: out of memory; faults then end
// the process.
bool prepare_for_faults();

// The thread's guard; null: none is set. In static thread-local storage, so that a signal handler may read it.
extern constinit thread_local FaultGuard* volatile up_guard __attribute__((tls_model("initial-exec")));

class Unguarded {
 public:
  Unguarded() : before_(up_guard) { up_guard = nullptr; }
  ~Unguarded() { up_guard = before_; }
  Unguarded(const Unguarded&) = delete;
  Unguarded& operator=(const Unguarded&) = delete;

 private:
  FaultGuard* const before_;
};

}  // namespace rille::device
