// run_command: runs a program to its end and collects its output. For the tools that reach other systems: ssh, sbatch,
// kubectl. Cancelling kills the program. Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/loop/subprocess.hpp"

namespace rille {

struct CommandOptions {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;  // added to the inherited environment
  std::string input;                                     // standard input
  std::string input_file;                                // or the file to read standard input from
  std::function<void(std::int64_t sent_bytes)> progress;
  std::int64_t timeout_ms = 60'000;         // 0: none
  std::size_t output_bytes_max = 16 << 20;  // per stream; further output is discarded
};

struct CommandResult {
  ExitStatus status;
  std::string out, err;
  bool ok() const { return status.signal == 0 && status.code == 0; }
  std::string last_words() const;  // the last line of err, or of out if err is empty, without the newline
};

// Any exit code is a success. io: there is no such program; timeout; cancelled.
Async<CommandResult> run_command(Loop& loop, CommandOptions options, CancelToken token = {});

}  // namespace rille
