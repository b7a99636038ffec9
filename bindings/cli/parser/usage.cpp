#include "bindings/cli/parser/usage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/core/base/did_you_mean.hpp"

namespace rille::cli {

namespace {

// Returns a command's full name: "rille", "rille show", "rille budget set".
std::string path_of(const CLI::App& command) {
  return command.get_parent() ? path_of(*command.get_parent()) + " " + command.get_name() : "rille";
}

std::vector<std::string> names_of_commands(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  return names;
}

// Returns a command's usage, its required options and all positional arguments: "rille fork RUN --from TEXT".
std::string usage_of(const CLI::App& command) {
  std::string line = path_of(command), needed;
  if (!command.get_parent()) line += " COMMAND";
  for (const CLI::Option* o : command.get_options()) {
    if (o->get_positional()) line += o->get_required() ? " " + o->get_name(true) : " [" + o->get_name(true) + "]";
    else if (o->get_required()) needed += fmt::format(" {} {}", o->get_name(), o->get_type_name());
  }
  const std::vector<std::string> commands = names_of_commands(command);
  if (command.get_parent() && !commands.empty()) line += fmt::format(" [{}]", fmt::join(commands, "|"));
  return line + needed;
}

// Returns the option names, such as "--gpu" and "-n", of this command and of `rille` itself.
std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  auto add = [&](std::string name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  };
  for (const CLI::App* app = &command; app; app = app->get_parent())
    for (const CLI::Option* o : app->get_options()) {
      if (o->get_group().empty()) continue;  // the option is hidden
      for (const std::string& name : o->get_lnames()) add("--" + name);
      for (const std::string& name : o->get_snames()) add("-" + name);
    }
  return names;
}

std::string unexpected_hint(const CLI::App& command, const std::string& word) {
  if (!word.starts_with("-")) {
    const std::vector<std::string> names = names_of_commands(command);
    const bool asks_list = word == "ls" || word == "list",
               has_ls = std::find(names.begin(), names.end(), "ls") != names.end();
    const std::string near = asks_list && has_ls ? "ls" : did_you_mean(word, names);
    if (!near.empty()) return fmt::format("did you mean `{} {}`?", path_of(command), near);
    if (asks_list && !names.empty()) return fmt::format("`{}` lists them", path_of(command));
    return fmt::format("usage: {}; its options: {} --help", usage_of(command), path_of(command));
  }
  if (word == "-v" || word == "-V") return "did you mean --version?";
  std::vector<std::string> flags = flags_of(command);
  std::string near = did_you_mean(word.substr(0, word.find('=')), flags);
  if (!near.empty()) return fmt::format("did you mean {}?", near);
  if (command.get_name() == "run")
    return fmt::format("the script's own options come after it: rille run FILE {}", word);
  return fmt::format("options: {}", fmt::join(flags, " "));
}

}  // namespace

Error usage_error(const CLI::App& cli, const CLI::ParseError& parse_error) {
  const CLI::App* last = &cli;
  while (!last->get_subcommands().empty()) last = last->get_subcommands().back();
  const CLI::App& command = *last;
  const std::string who = path_of(command);
  std::string message = parse_error.what(), hint = "usage: " + usage_of(command);
  if (dynamic_cast<const CLI::ExtrasError*>(&parse_error)) {
    std::vector<std::string> words = cli.remaining(true);
    std::string word = words.empty() ? "" : words.front();
    message = fmt::format("{} does not take '{}'", who, word);
    hint = unexpected_hint(command, word);
  } else if (dynamic_cast<const CLI::RequiredError*>(&parse_error)) {
    message = fmt::format("{}: {}", who, message);  // gives "rille show: RUN is required"
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&parse_error)) {
    message = fmt::format("{} needs a value", message.substr(0, message.find(':')));
  }
  return make_error(ErrorKind::invalid, std::move(message), std::move(hint)).with_operation("usage");
}

}  // namespace rille::cli
