// A starting agent reports to the `connect` that started it with one line on standard output, then closes it. It is no
// error if the starter is gone.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace rille::agent {

inline void close_starter() {
  int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) dup2(null, 1);
  if (null > 2) close(null);
}

inline void tell_starter(const std::string& line) {
  [[maybe_unused]] ssize_t said = write(1, (line + "\n").c_str(), line.size() + 1);
  close_starter();
}

}  // namespace rille::agent
