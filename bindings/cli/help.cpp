#include <fmt/format.h>

#include "bindings/cli/command.hpp"

namespace rille::cli {

namespace {

std::string line(std::string_view word, std::string_view text) { return fmt::format("  {:<11} {}\n", word, text); }

}  // namespace

std::string help_page() {
  std::string out =
      "Rille: rent, stage, train, checkpoint and release from one Lua script\n"
      "Usage: rille [OPTIONS] FILE [--NAME VALUE ..]\n"
      "       rille [OPTIONS] COMMAND ..\n"
      "       rille                        opens the prompt\n";
  const CommandRow* last = nullptr;
  for (const CommandRow* row : commands_of("")) {
    if (!last || last->group != row->group) out += fmt::format("\n{}:\n", title_of(row->group));
    out += line(row->name, row->text);
    last = row;
  }
  out += "\nOptions:\n" + line("--json", "print data as JSON") + line("-e CODE", "run this Lua");
  out += line("--version", "print the version") + line("-h, --help", "print this page; after a command, its options");
  return out;
}

}  // namespace rille::cli
