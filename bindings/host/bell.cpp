#include "bindings/host/bell.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "runtime/core/base/time.hpp"

namespace rille::host {

namespace {

constexpr int bell_signal = SIGURG;
// If a ring stays unanswered this long, the ringing thread sets the hook itself: the program has blocked the signal or
// replaced its handler.
constexpr std::int64_t unanswered_ns = 200'000'000;

// The signal handler reads these, so reading them must not allocate memory.
constinit thread_local Bell::Here* volatile innermost __attribute__((tls_model("initial-exec"))) = nullptr;
constinit thread_local pid_t this_thread __attribute__((tls_model("initial-exec"))) = 0;
constinit thread_local volatile bool handling __attribute__((tls_model("initial-exec"))) = false;

std::mutex handler_mutex;
int bells = 0;
struct sigaction handler_before;

pid_t own_thread() {
  if (!this_thread) this_thread = static_cast<pid_t>(::syscall(SYS_gettid));
  return this_thread;
}

// Called when a thread uses a bell for the first time.
void unblock() {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, bell_signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

}  // namespace

void Bell::on_signal(int number, siginfo_t* info, void* context) {
  // called again by the program's handler (handler_before), which passes the signal on to this one
  if (handling) return;
  handling = true;
  const int kept = errno;
  for (Here* h = innermost; h; h = h->outer_) h->bell_.answer();
  errno = kept;
  if (handler_before.sa_flags & SA_SIGINFO) handler_before.sa_sigaction(number, info, context);
  else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN)
    handler_before.sa_handler(number);
  handling = false;
}

// Called for each Bell, because the program may have set its own handler in the meantime.
void Bell::install() {
  static std::once_flag forks;
  std::call_once(forks, [] { ::pthread_atfork(nullptr, nullptr, [] { this_thread = 0; }); });
  const std::lock_guard lock(handler_mutex);
  ++bells;
  struct sigaction now {};
  if (::sigaction(bell_signal, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == &Bell::on_signal) return;
  handler_before = now;
  struct sigaction ours {};
  ours.sa_sigaction = &Bell::on_signal;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  ::sigaction(bell_signal, &ours, nullptr);
}

void Bell::restore() {
  const std::lock_guard lock(handler_mutex);
  struct sigaction now {};
  if (--bells > 0 || ::sigaction(bell_signal, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == &Bell::on_signal)
    ::sigaction(bell_signal, &handler_before, nullptr);
}

Bell::Bell(lua_State* L, lua_Hook hook) : L_(L), hook_(hook) { install(); }
Bell::~Bell() { restore(); }

// Removes the hook first, so that LuaJIT rewrites its tables whatever it was doing when the signal came.
void Bell::answer() noexcept {
  do {
    int unheld = 0;
    if (!held_.compare_exchange_strong(unheld, 1)) return;  // the holder answers when it lets go
    while (rung_.exchange(false)) {
      lua_sethook(L_, nullptr, 0, 0);
      lua_sethook(L_, hook_, LUA_MASKCOUNT, 1);
    }
  } while (held_.fetch_sub(1) == 1 && rung_.load());
}

void Bell::let_go() noexcept {
  if (held_.fetch_sub(1) == 1 && rung_.load()) answer();
}

void Bell::ring() noexcept {
  const std::int64_t now = system_clock().monotonic_ns();
  const bool again = rung_.exchange(true);
  if (!again) since_ns_.store(now);
  const pid_t to = thread_.load();
  if (!to) return;  // the next Here answers
  if (to == own_thread()) return answer();
#ifdef __SANITIZE_THREAD__
  answer();  // TSan delays signals until the next call that it intercepts, and an endless loop makes none
#else
  if (again && now - since_ns_.load() > unanswered_ns) return answer();
  ::syscall(SYS_tgkill, ::getpid(), to, bell_signal);
#endif
}

Bell::Here::Here(Bell& bell) noexcept : bell_(bell), outer_(innermost), before_(bell.thread_.load()) {
  if (!this_thread) unblock();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  innermost = this;
  bell_.since_ns_.store(INT64_MAX / 2);  // an earlier ring had no thread to reach
  bell_.thread_.store(own_thread());
  bell_.answer();  // answers a ring that came before thread_ was set
}

Bell::Here::~Here() {
  bell_.thread_.store(before_);
  innermost = outer_;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace rille::host
