// run_command: runs a program to its end and collects its output. Used for programs that reach other systems, such as
// ssh, sbatch and kubectl. Cancelling kills the program. Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/loop/subprocess.hpp"

namespace rille {

struct CommandOptions {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;  // variables added to the inherited environment
  std::string input;                                     // bytes for standard input
  std::string input_file;  // if set, standard input is this file's content instead of `input`
  std::function<void(std::int64_t sent_bytes)> progress;
  std::int64_t timeout_ms = 60'000;         // kill the program after this time; 0: no limit
  std::size_t output_bytes_max = 16 << 20;  // limit for each of stdout and stderr; further output is discarded
};

struct CommandResult {
  ExitStatus status;
  std::string out, err;
  bool ok() const { return status.signal == 0 && status.code == 0; }
  std::string last_words() const;  // the last line of err, or of out if err is empty, without the newline
};

// Succeeds with any exit code. Errors: io (there is no such program), timeout, cancelled.
Async<CommandResult> run_command(Loop& loop, CommandOptions options, CancelToken token = {});

}  // namespace rille
