// Parses `rille [--json] COMMAND ..`: finds the command in the table and fills its arguments. Only the chosen command
// declares its options, so the size of the table does not slow the start.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/command.hpp"

namespace rille::cli {

struct CommandLine {
  std::string text;                  // printed for --help and --version; the other fields are then empty
  std::optional<std::string> code;   // the code of -e; there is no command then
  const CommandRow* row = nullptr;   // null: no command given
  std::unique_ptr<Command> command;  // with its arguments filled in
};

// invalid: the words cannot be parsed; the hint suggests what was meant. `json` is set even then.
Result<CommandLine> parse_command_line(std::vector<std::string> words, bool& json);

// The declared options, for completion. Excludes commands with all_words().
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
