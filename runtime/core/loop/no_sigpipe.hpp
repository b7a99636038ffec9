// While a NoSigpipe object exists, SIGPIPE is blocked in this thread. For code that writes to a pipe or socket without
// MSG_NOSIGNAL, as libcurl and OpenSSL do. The destructor discards a SIGPIPE raised in between. The process's handler
// for SIGPIPE is not changed.
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
