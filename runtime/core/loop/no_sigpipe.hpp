// Keeps SIGPIPE from this thread while something may write to a closed pipe or socket that knows no MSG_NOSIGNAL (a
// pipe;
// libcurl and OpenSSL inside), and eats the one that was raised. The library changes no signal's disposition.
#pragma once

#include <signal.h>

namespace rille {

class NoSigpipe {
 public:
  NoSigpipe();
  ~NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;

 private:
  sigset_t before_;
  bool was_pending_;
};

}  // namespace rille
