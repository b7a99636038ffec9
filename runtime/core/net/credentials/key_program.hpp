// External programs that print keys: a program named by a profile or a key file, and `az`. Their standard output is
// secret and never shown. Their standard error may contain a secret too (a shell trace, a debug message), so it is
// shown only for known programs. The programs get no terminal. Loop thread only.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::net {

struct KeyProgram {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env = {};  // variables added to this process's environment
  std::string what;  // names the program in messages: "credential_process of the AWS profile 'work'"
  std::int64_t timeout_ms = 60'000;
  bool known = false;  // true: the program's standard error never contains a key, so it may be shown
};

// The JSON that the program prints; null if it prints nothing. Errors: auth (the program fails, or prints something
// else), io (the program does not exist), timeout.
Async<Value> ask_program(Loop& loop, KeyProgram program, CancelToken token);

// One line of a program's standard error, short enough for a message: the last line that begins with "error", else the
// last line; "" if there is no line.
std::string telling_line(const std::string& said);

}  // namespace rille::net
