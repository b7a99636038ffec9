// The table of commands. Each command is one file that contains a struct with the command's arguments, the options
// that set them, and run(); and a Registered object, which adds the command to the table. The parser, the help, the
// completion and the dispatch read this table.
//
//   struct QuotasCommand final : Command {
//     std::string region;
//     void declare(Options& o) override { o.option("--region", region, "in this region only"); }
//     Exit run(App& app) override;
//   };
//   const Registered<QuotasCommand> quotas_row({Group::money, "quotas", "how much the accounts may rent"});
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/app.hpp"
#include "bindings/cli/exit.hpp"
#include "bindings/cli/parser/options.hpp"

namespace rille::cli {

// The groups of commands in `rille --help`, in the order of the page.
enum class Group { run, look, money, rewrite, machines, project };
const char* title_of(Group group);

class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(Options&) {}
  // For a command without declared options: returns the vector that receives all words after the command's name,
  // unparsed. null: the command declares options.
  virtual std::vector<std::string>* all_words() { return nullptr; }
  virtual Exit run(App& app) = 0;  // called after the options were parsed
};

// The help text for the argument RUN of several commands.
inline constexpr const char* names_a_run = "its id, a unique beginning of it, or `last`";

enum class Opens { engine, nothing };  // what is opened before run(): the engine with its journal, or nothing

struct CommandRow {
  Group group;
  const char* name;  // "schedule", or for a nested command both words: "schedule add"
  const char* text;  // one line of at most 66 columns, so that a line of `rille --help` fits 80 columns
  Opens opens = Opens::engine;
  std::unique_ptr<Command> (*make)() = nullptr;

  bool is_nested() const { return std::string_view(name).find(' ') != std::string_view::npos; }
};

// All commands, sorted by group, then by name.
const std::vector<CommandRow>& commands();
// Finds a command by name; null: no such command.
const CommandRow* find_command(std::string_view name);
// Returns the nested commands of the command `parent`: for "schedule", "schedule add" and so on; for "", the top
// level.
std::vector<const CommandRow*> commands_of(std::string_view parent);

// Returns the page that `rille --help` prints. Defined in help.cpp.
std::string help_page();

void add_command(CommandRow row);

template <class C>
struct Registered {
  explicit Registered(CommandRow row) {
    row.make = []() -> std::unique_ptr<Command> { return std::make_unique<C>(); };
    add_command(row);
  }
};

}  // namespace rille::cli
