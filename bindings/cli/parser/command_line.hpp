// `rille [--json] COMMAND ..`: finds the command in the table and fills its arguments. Only the command that is named
// declares its options, so that the table may grow without slowing the start.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/command.hpp"

namespace rille::cli {

struct CommandLine {
  std::string text;                  // to be printed, for --help and --version; then the rest is empty
  std::optional<std::string> code;   // of -e; there is no command then
  const CommandRow* row = nullptr;   // null: no command was named
  std::unique_ptr<Command> command;  // with its arguments
};

// invalid: the words cannot be understood; the hint says what was probably meant. `json` is set even then.
Result<CommandLine> parse_command_line(std::vector<std::string> words, bool& json);

// What the commands declare, for completion. Without those that read their words themselves.
struct DeclaredOption {
  std::string name, text;  // "--state", "-n"
};
struct DeclaredCommand {
  const CommandRow* row;
  std::vector<std::string> positionals;
  std::vector<DeclaredOption> options;
};
std::vector<DeclaredCommand> declared_commands();

}  // namespace rille::cli
