// Splits a command line into the words of the script and the words of the command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "bindings/cli/parser/options.hpp"

namespace rille::cli {

struct SplitWords {
  std::vector<std::string> ours, script;
};

// Splits `words`, all words after the command's name.
SplitWords split_words(const std::vector<std::string>& words, ScriptWords where, const CLI::App& command);

// Whether the word is an option: "-x" and "--x" are, but "-" is a file.
bool is_flag(const std::string& word);
// Whether the option's value is the next word: true for "--tag", false for "--tag=x" and flags.
bool takes_next_word(const CLI::App& command, const std::string& word);

}  // namespace rille::cli
