// Programs of others that print keys: what a profile or a key file names, and `az`. What they print on their standard
// output is a secret and never shown; what they say on their standard error may hold one, too (a script that is traced,
// a tool that tells what it has read), and is shown of those alone that are known. They have no terminal.
// Loop thread only.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::provider::cloud {

struct KeyProgram {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env = {};  // added to ours
  std::string what;  // for people: "credential_process of the AWS profile 'work'"
  std::int64_t timeout_ms = 60'000;
  bool known = false;  // what it says on its standard error never holds a key
};

// The JSON that it prints; null where it prints nothing. auth: it fails, or prints something else; io: there is no such
// program; timeout.
Async<Value> ask_program(Loop& loop, KeyProgram program, CancelToken token);

// Of what a program has said for people, one line, short enough for a message: the last that begins with "error", else
// the last; "": nothing.
std::string telling_line(const std::string& said);

}  // namespace rille::provider::cloud
