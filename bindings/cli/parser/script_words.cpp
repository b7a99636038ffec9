#include "bindings/cli/parser/script_words.hpp"

#include <algorithm>

namespace rille::cli {

namespace {

const CLI::Option* option_of(const CLI::App& command, const std::string& word) {
  return is_flag(word) ? command.get_option_no_throw(word.substr(0, word.find('='))) : nullptr;
}

// Splits a command line in which all words after the last positional argument belong to the script.
SplitWords split_after_file(const std::vector<std::string>& words, const CLI::App& command) {
  const std::vector<const CLI::Option*> options = command.get_options();
  const auto positionals =
      std::count_if(options.begin(), options.end(), [](const CLI::Option* o) { return o->get_positional(); });
  SplitWords out;
  std::size_t i = 0;
  for (std::ptrdiff_t found = 0; i < words.size() && found < positionals; ++i) {
    out.ours.push_back(words[i]);
    if (!is_flag(words[i])) ++found;
    else if (takes_next_word(command, words[i]) && i + 1 < words.size()) out.ours.push_back(words[++i]);
  }
  out.script.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return out;
}

// Splits a command line in which the command's own options may stand anywhere before a `--`; an unknown option and
// the value that follows it belong to the script.
SplitWords split_mixed(const std::vector<std::string>& words, const CLI::App& command) {
  SplitWords out;
  bool file = false;
  std::size_t i = 0;
  for (; i < words.size() && words[i] != "--"; ++i) {
    const std::string& w = words[i];
    if (w == "--json" || option_of(command, w) || (!file && !w.starts_with("--"))) {
      file = file || !w.starts_with("-");
      out.ours.push_back(w);
      if (takes_next_word(command, w) && i + 1 < words.size()) out.ours.push_back(words[++i]);
    } else {
      out.script.push_back(w);
      const bool value = w.starts_with("--") && w.find('=') == w.npos && i + 1 < words.size();
      if (value && !words[i + 1].starts_with("--")) out.script.push_back(words[++i]);
    }
  }
  if (i < words.size())
    out.script.insert(out.script.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
  return out;
}

}  // namespace

bool is_flag(const std::string& word) { return word.starts_with("-") && word != "-"; }

bool takes_next_word(const CLI::App& command, const std::string& word) {
  const CLI::Option* option = option_of(command, word);
  return option && word.find('=') == word.npos && option->get_items_expected_max() > 0;
}

SplitWords split_words(const std::vector<std::string>& words, ScriptWords where, const CLI::App& command) {
  switch (where) {
    case ScriptWords::after_file: return split_after_file(words, command);
    case ScriptWords::mixed: return split_mixed(words, command);
    case ScriptWords::none: break;
  }
  return {words, {}};
}

}  // namespace rille::cli
