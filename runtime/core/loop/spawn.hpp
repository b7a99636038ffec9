// Starts programs; no other code forks. A child inherits nothing that is not listed: descriptors are close-on-exec,
// signals are unblocked and at their defaults. Uses vfork, so that a large process starts a child as fast as a small
// one; posix_spawn cannot tie a child's life to its parent's.
// Any thread; die_with_us ties the child to the thread that starts it.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille {

struct Spawn {
  std::vector<std::string> argv;                         // argv[0] is looked up in the child's PATH
  std::vector<std::pair<std::string, std::string>> env;  // added to our environment, replacing variables
  std::vector<std::string> without;                      // variables of our environment to remove
  std::string directory;                                 // "": ours
  std::vector<std::pair<int, int>> files;                // our descriptor and its number in the child
  bool session = false;                                  // start a new session
  bool die_with_us = false;                              // the kernel kills the child when the starting thread ends
};

// Returns the child's id; the caller waits for it. invalid: argv is empty. io, with code "errno N": the program or the
// directory does not exist, or is not executable.
Result<pid_t> spawn(const Spawn& what);

// The error for a child that cannot be waited for: its exit status is unknown, so it did not succeed.
Error stolen_child(pid_t pid);

}  // namespace rille
