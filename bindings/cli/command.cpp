#include "bindings/cli/command.hpp"

#include <algorithm>

namespace rille::cli {

namespace {

// The commands, in link order: static initializers add them before main().
std::vector<CommandRow>& table() {
  static std::vector<CommandRow> rows;
  return rows;
}

}  // namespace

const char* title_of(Group group) {
  switch (group) {
    case Group::run: return "Run scripts";
    case Group::look: return "Look at runs and at this machine";
    case Group::money: return "Rent and spend";
    case Group::rewrite: return "Change runs";
    case Group::machines: return "Machines";
    case Group::project: return "Set up";
  }
  return "";
}

void add_command(CommandRow row) {
  auto before = [](const CommandRow& a, const CommandRow& b) {
    return a.group != b.group ? a.group < b.group : std::string_view(a.name) < b.name;
  };
  table().insert(std::upper_bound(table().begin(), table().end(), row, before), row);
}

const std::vector<CommandRow>& commands() { return table(); }

const CommandRow* find_command(std::string_view name) {
  for (const CommandRow& row : commands())
    if (row.name == name) return &row;
  return nullptr;
}

std::vector<const CommandRow*> commands_of(std::string_view parent) {
  std::vector<const CommandRow*> out;
  for (const CommandRow& row : commands()) {
    const std::string_view name = row.name;
    const std::size_t space = name.find(' ');
    if (name.substr(0, space == name.npos ? 0 : space) == parent) out.push_back(&row);
  }
  return out;
}

}  // namespace rille::cli
