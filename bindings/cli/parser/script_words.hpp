// Which words of a command line are the script's and which are the command's.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "bindings/cli/parser/options.hpp"

namespace rille::cli {

struct SplitWords {
  std::vector<std::string> ours, script;
};

// `words`: those after the command's name.
SplitWords split_words(const std::vector<std::string>& words, ScriptWords where, const CLI::App& command);

// "-x", "--x"; but "-" stands for a file.
bool is_flag(const std::string& word);
// "--tag", but neither "--tag=x" nor a flag.
bool takes_next_word(const CLI::App& command, const std::string& word);

}  // namespace rille::cli
