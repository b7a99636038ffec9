// run_command: a program from start to end, with what it said. For the tools that speak for others: ssh, sbatch,
// kubectl. Cancelling ends the program. Loop thread only.
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
  std::string input;                                     // its standard input
  std::string input_file;                                // or that of this file
  std::function<void(std::int64_t sent_bytes)> progress;
  std::int64_t timeout_ms = 60'000;         // 0: none
  std::size_t output_bytes_max = 16 << 20;  // of each stream; more is thrown away
};

struct CommandResult {
  ExitStatus status;
  std::string out, err;
  bool ok() const { return status.signal == 0 && status.code == 0; }
  std::string last_words() const;  // the last line of err, else of out, without its end
};

// Any exit code is a result. io: there is no such program; timeout; cancelled.
Async<CommandResult> run_command(Loop& loop, CommandOptions options, CancelToken token = {});

}  // namespace rille
