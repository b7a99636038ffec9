#include "runtime/core/loop/no_sigpipe.hpp"

#include <cerrno>

namespace rille {

namespace {
sigset_t pipe_only() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}
}  // namespace

NoSigpipe::NoSigpipe() {
  sigset_t pending, pipe = pipe_only();
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before_);
}

NoSigpipe::~NoSigpipe() {
  int saved = errno;
  sigset_t pipe = pipe_only();
  timespec zero{};
  if (!was_pending_ && !sigismember(&before_, SIGPIPE))
    while (sigtimedwait(&pipe, nullptr, &zero) < 0 && errno == EINTR) {}
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = saved;
}

}  // namespace rille
