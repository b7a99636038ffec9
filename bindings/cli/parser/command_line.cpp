#include "bindings/cli/parser/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "bindings/cli/parser/script_words.hpp"
#include "bindings/cli/parser/usage.hpp"

namespace rille::cli {

namespace {

// Adds a command and the names of its nested commands to the parser, for the help and for "did you mean".
CLI::App& add_to(CLI::App& root, const CommandRow& row) {
  const std::string_view name = row.name;
  const std::string_view parent = name.substr(0, name.find(' '));
  const CommandRow& outer = *find_command(parent);
  CLI::App& app = *root.add_subcommand(outer.name, outer.text);
  CLI::App* chosen = &app;
  for (const CommandRow* nested : commands_of(parent)) {
    CLI::App* added = app.add_subcommand(nested->name + parent.size() + 1, nested->text);
    if (nested == &row) chosen = added;
  }
  return *chosen;
}

struct Named {
  const CommandRow* row;
  std::size_t rest;  // index of the first word after the command's name
};

// Finds the command named by the word at `first`. A word that is not a command is a script's file, for `rille run`.
Named name_at(const std::vector<std::string>& words, std::size_t first) {
  const CommandRow* row = find_command(words[first]);
  if (!row || row->is_nested()) return {find_command("run"), first};
  const auto next = std::find_if_not(words.begin() + static_cast<std::ptrdiff_t>(first) + 1, words.end(), is_flag);
  if (next != words.end())
    if (const CommandRow* nested = find_command(fmt::format("{} {}", row->name, *next)))
      return {nested, static_cast<std::size_t>(next - words.begin()) + 1};
  return {row, first + 1};
}

// Sets the command in `line` and returns the words that CLI11 shall parse.
std::vector<std::string> choose(const std::vector<std::string>& words, std::size_t first, CLI::App& root,
                                CommandLine& line) {
  const auto begin = words.begin();
  std::vector<std::string> ours(begin, begin + static_cast<std::ptrdiff_t>(first));
  if (first == words.size()) return ours;
  const Named named = name_at(words, first);
  const std::vector<std::string> rest(begin + static_cast<std::ptrdiff_t>(named.rest), words.end());
  line.row = named.row;
  line.command = named.row->make();
  CLI::App& app = add_to(root, *named.row);
  Options options(app);
  line.command->declare(options);
  if (named.rest == first) ours.emplace_back(named.row->name);
  else
    ours.insert(ours.end(), begin + static_cast<std::ptrdiff_t>(first),
                begin + static_cast<std::ptrdiff_t>(named.rest));
  SplitWords split = split_words(rest, options.where(), app);
  if (options.script_words()) *options.script_words() = std::move(split.script);
  ours.insert(ours.end(), split.ours.begin(), split.ours.end());
  return ours;
}

// Fills a command that takes all words unparsed (all_words()). false: the command line names no such command.
bool read_all_words(const std::vector<std::string>& words, CommandLine& line) {
  const CommandRow* row = words.empty() ? nullptr : find_command(words.front());
  if (!row) return false;
  std::unique_ptr<Command> command = row->make();
  std::vector<std::string>* all = command->all_words();
  if (!all) return false;
  all->assign(words.begin() + 1, words.end());
  line.row = row;
  line.command = std::move(command);
  return true;
}

std::size_t first_word(const std::vector<std::string>& words, const CLI::App& root) {
  std::size_t first = 0;
  while (first < words.size() && is_flag(words[first])) first += takes_next_word(root, words[first]) ? 2 : 1;
  return std::min(first, words.size());
}

}  // namespace

Result<CommandLine> parse_command_line(std::vector<std::string> words, bool& json) {
  CommandLine line;
  if (read_all_words(words, line)) return line;
  std::string code;
  CLI::App root("", "rille");
  root.set_version_flag("--version", "rille " RILLE_VERSION);
  root.add_flag("--json", json, "print data as JSON");
  root.add_option("-e", code, "run this Lua");
  root.fallthrough();
  std::size_t first = first_word(words, root);
  if (first < words.size() && words[first] == "help") {
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(first));
    words.emplace_back("--help");
    first = first_word(words, root);
  }
  std::vector<std::string> ours = choose(words, first, root, line);
  std::reverse(ours.begin(), ours.end());  // CLI11 takes the words from the back of the vector
  try {
    root.parse(ours);
  } catch (const CLI::CallForVersion& version) {
    CommandLine asked;
    asked.text = fmt::format("{}\n", version.what());
    return asked;
  } catch (const CLI::CallForHelp&) {
    CommandLine asked;
    asked.text = root.get_subcommands().empty() ? help_page() : root.help();
    return asked;
  } catch (const CLI::ParseError& e) { return usage_error(root, e); }
  if (root.count("-e") > 0) line.code = std::move(code);
  if (line.code && line.row)
    return make_error(
        ErrorKind::invalid,
        fmt::format("-e CODE is the whole script, so the script file '{}' cannot be run too", words[first]),
        "run either");
  return line;
}

std::vector<DeclaredCommand> declared_commands() {
  std::vector<DeclaredCommand> out;
  for (const CommandRow* row : commands_of("")) {
    const std::unique_ptr<Command> command = row->make();
    if (command->all_words()) continue;
    CLI::App app;
    Options options(app);
    command->declare(options);
    DeclaredCommand declared{row, {}, {}};
    for (const CLI::Option* o : app.get_options()) {
      if (o->get_positional()) {
        declared.positionals.push_back(o->get_name(true));
        continue;
      }
      if (o->get_group().empty()) continue;  // the option is hidden
      for (const std::string& name : o->get_lnames()) declared.options.push_back({"--" + name, o->get_description()});
      for (const std::string& name : o->get_snames()) declared.options.push_back({"-" + name, o->get_description()});
    }
    out.push_back(std::move(declared));
  }
  return out;
}

}  // namespace rille::cli
