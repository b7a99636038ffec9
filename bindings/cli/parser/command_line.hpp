// Parses `rille [--json] COMMAND ..`: finds the command in the table and sets the command's arguments. Only the
// chosen command declares its options, so a large table does not slow the start.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/command.hpp"

namespace rille::cli {

struct CommandLine {
  std::string text;                  // printed for --help and --version; then the other fields are empty
  std::optional<std::string> code;   // the argument of -e; then `row` and `command` are null
  const CommandRow* row = nullptr;   // null: the user gave no command
  std::unique_ptr<Command> command;  // the command, with its arguments set
};

// invalid: the words cannot be parsed; the hint suggests what the user probably meant. `json` is set even then.
Result<CommandLine> parse_command_line(std::vector<std::string> words, bool& json);

// The options that commands declare, for shell completion. Commands with all_words() are left out.
struct DeclaredOption {
  std::string name, text;  // name: "--state" or "-n"; text: the help
};
struct DeclaredCommand {
  const CommandRow* row;
  std::vector<std::string> positionals;
  std::vector<DeclaredOption> options;
};
std::vector<DeclaredCommand> declared_commands();

}  // namespace rille::cli
