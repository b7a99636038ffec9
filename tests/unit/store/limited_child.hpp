// Runs a function in a forked child with a limit on file sizes: a full disk without privileges.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// Returns the function's value, the child's exit code (0..255); -1 if the child was killed.
template <class Fn>
int in_child_with_file_limit(rlim_t bytes, Fn fn) {
  pid_t pid = fork();
  if (pid == 0) {
    signal(SIGXFSZ, SIG_IGN);  // so that the write fails with EFBIG instead
    rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(fn());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
