// External programs that print keys: the one that a profile or a key file names, and `az`. Their standard output is
// secret and never shown. Their standard error may contain a secret too (a shell trace, a debug message), so only that
// of known programs is shown. They get no terminal. Loop thread only.
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
  std::vector<std::pair<std::string, std::string>> env = {};  // added to this process's environment
  std::string what;  // for people: "credential_process of the AWS profile 'work'"
  std::int64_t timeout_ms = 60'000;
  bool known = false;  // its standard error never contains a key
};

// The JSON that it prints; null if it prints nothing. auth: it fails, or prints something else; io: the program does
// not exist; timeout.
Async<Value> ask_program(Loop& loop, KeyProgram program, CancelToken token);

// One line of a program's standard error, short enough for a message: the last that begins with "error", else the last;
// "": there is none.
std::string telling_line(const std::string& said);

}  // namespace rille::net
