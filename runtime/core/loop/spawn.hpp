// Starts programs; no other code forks. A child inherits only the descriptors that are listed, and its signals are
// unblocked and at their defaults. Uses vfork, so that a large process starts a child as fast as a small one;
// posix_spawn cannot kill a child when its parent ends.
// Any thread; with die_with_us the child dies with the thread that starts it.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille {

struct Spawn {
  std::vector<std::string> argv;  // argv[0] is looked up in the child's PATH
  // variables to add to this process's environment or replace in it
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::string> without;        // variables of this process's environment that the child does not get
  std::string directory;                   // the child's working directory; "": the current directory
  std::vector<std::pair<int, int>> files;  // a descriptor of this process, and the number it gets in the child
  bool session = false;                    // start the child in a new session
  bool die_with_us = false;                // the kernel kills the child when the starting thread ends
};

// Returns the child's process id; the caller must wait for the child. Error `invalid`: argv is empty. Error `io`, with
// code "errno N": the program or the directory does not exist, or the program is not executable.
Result<pid_t> spawn(const Spawn& what);

// The error for a child that waitpid does not find: its exit status is unknown, so it counts as failed.
Error stolen_child(pid_t pid);

}  // namespace rille
