// Starting a program: the one place that forks. Nothing of ours goes along but what is named: descriptors are
// close-on-exec, signals are unblocked and at their defaults. Through vfork, so that a large process starts one as fast
// as a small one, and because posix_spawn cannot tie a child's life to its parent's.
// Any thread; die_with_us ties the child to the thread that starts it.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille {

struct Spawn {
  std::vector<std::string> argv;                         // argv[0] is looked up in the PATH that it gets
  std::vector<std::pair<std::string, std::string>> env;  // added to our environment, replacing what has the name
  std::vector<std::string> without;                      // names in our environment that do not go along
  std::string directory;                                 // "" = ours
  std::vector<std::pair<int, int>> files;                // a descriptor of ours, and its number in the child
  bool session = false;                                  // its own session
  bool die_with_us = false;                              // the kernel kills it when the thread that starts it ends
};

// The child's id; the caller waits for it. invalid: argv is empty. io, with code "errno N": the program or the
// directory is not there, or not executable.
Result<pid_t> spawn(const Spawn& what);

// Of a child that was there and cannot be waited for: how it ended is not known, which is no success.
Error stolen_child(pid_t pid);

}  // namespace rille
