// Exit codes of the command `rille`. docs/manual/running.md describes them.
#pragma once

#include "runtime/core/base/error.hpp"

namespace rille::cli {

enum class Exit {
  ok = 0,
  script = 1,           // the script or the command failed
  usage = 2,            // the command line is invalid
  cleanup_pending = 3,  // a machine may still be rented; takes precedence over the other codes
  timeout = 124,
  interrupted = 130,  // the user pressed Ctrl-C, or the run was cancelled
};

constexpr int status_of(Exit code) { return static_cast<int>(code); }

inline Exit exit_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::timeout: return Exit::timeout;
    case ErrorKind::cancelled: return Exit::interrupted;
    default: return Exit::script;
  }
}

}  // namespace rille::cli
