// A kernel that divides a whole number by zero, or reads or writes where nothing is, ends neither the process nor the
// run: the launch fails, with an error that says what and where.
//
// While a thread runs a kernel, a handler for SIGFPE, SIGSEGV, SIGBUS and SIGILL goes on at the place where that thread
// left for the kernel's stack, as if the kernel had failed an assert: the stack is given up as it stands. Nothing on it
// has to be unwound: below the switch are only the kernel, which is compiled without exceptions, and functions of
// BlockRunner, which hold no lock and own nothing while the guard is up. They take it down where they do (Unguarded).
//
// Every other fault, and a signal that somebody sends, goes to the handler that was there before. The handlers are
// installed at the first launch of the process and stay. Signals come on a stack of their own: the thread's, when it
// has one already (sigaltstack), else one that is made with its first launch.
#pragma once

#include <csignal>
#include <cstdint>

namespace rille::device {

struct Fault {
  int signal = 0;              // 0: none
  int code = 0;                // of siginfo: FPE_INTDIV
  const void* at = nullptr;    // the address that was touched
  const void* site = nullptr;  // of the instruction
};

// The place to go on at, as switch_stack() left it (fiber_stack.hpp).
struct FaultGuard {
  void* const* home = nullptr;  // where the stack pointer is noted
  void* worker = nullptr;       // for r15
  Fault fault;
};

// Before a thread's first kernel: handlers and stack. False: the machine gives no memory for it; faults end the process
// then.
bool prepare_for_faults();

// Of this thread; null: none is up. In static thread-local storage, so that a handler may read it.
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
