// If a CPU kernel divides an integer by zero or accesses unmapped memory, the launch fails with an error that says what
// happened and where; the process continues.
//
// A handler for SIGFPE, SIGSEGV, SIGBUS and SIGILL abandons the kernel's stack and continues where the OS thread
// switched to that stack, as after a failed assert. No frame on the abandoned stack needs unwinding: the kernel is
// compiled without exceptions, and BlockRunner's functions hold no lock and own nothing while the guard is set. Code
// that does hold a lock clears the guard (Unguarded).
//
// Faults elsewhere and signals sent by a process go to the handler installed before ours. Our handlers are installed at
// the first launch and never removed. They run on the thread's signal stack (sigaltstack), which a thread without one
// gets at its first launch.
#pragma once

#include <csignal>
#include <cstdint>

namespace rille::device {

struct Fault {
  int signal = 0;              // the signal's number; 0: no fault
  int code = 0;                // si_code of the signal: FPE_INTDIV
  const void* at = nullptr;    // the address that the kernel accessed
  const void* site = nullptr;  // address of the faulting instruction
};

// Where to continue after a fault: a stack that switch_stack() (fiber_stack.hpp) has left.
struct FaultGuard {
  void* const* home = nullptr;  // location of the stored stack pointer
  void* worker = nullptr;       // value for register r15
  Fault fault;
};

// Installs the handlers and this thread's signal stack. False: out of memory; a fault then ends the process.
bool prepare_for_faults();

// This OS thread's guard; null: the thread runs no kernel. The variable is in static thread-local storage
// (initial-exec), so that a signal handler may read it.
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
