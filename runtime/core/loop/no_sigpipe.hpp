// Blocks SIGPIPE in this thread while code writes to a pipe or socket without MSG_NOSIGNAL (libcurl and OpenSSL
// do), and discards a SIGPIPE raised meanwhile. The signal's disposition is not
// changed.
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
