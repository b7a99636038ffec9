// The table of commands. A command is one file: a struct with its arguments, the options that fill them, and what it
// does; and a Registered that puts it into the table, from which come parsing, help, completion and dispatch.
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

// The sections of `rille --help`, in their order.
enum class Group { run, look, money, rewrite, machines, project };
const char* title_of(Group group);

class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(Options&) {}
  // Where all words after the command's name go, unread and without a parser; null: it declares options.
  virtual std::vector<std::string>* all_words() { return nullptr; }
  virtual Exit run(App& app) = 0;  // after the options were parsed
};

// What an option RUN says of itself.
inline constexpr const char* names_a_run = "its id, a unique beginning of it, or `last`";

enum class Opens { engine, nothing };  // before run()

struct CommandRow {
  Group group;
  const char* name;  // "schedule"; "schedule add" is a command of that one
  const char* text;  // one line; at most 66 columns, so that the help fits a terminal of 80
  Opens opens = Opens::engine;
  std::unique_ptr<Command> (*make)() = nullptr;

  bool is_nested() const { return std::string_view(name).find(' ') != std::string_view::npos; }
};

// By group, then by name.
const std::vector<CommandRow>& commands();
// Null: there is no such command.
const CommandRow* find_command(std::string_view name);
// The commands of `parent`, e.g. "schedule add"; of "": those that stand by themselves.
std::vector<const CommandRow*> commands_of(std::string_view parent);

// `rille --help`: the table as a page. help.cpp
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
