// The options that a command's `declare` adds. Values are written directly to the variables passed here; without the
// option a variable keeps its value. CLI11 does the parsing; only this folder includes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rille::cli {

// One declared option, for further settings: o.option(..).required().
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}
  Option& required();
  Option& among(std::vector<std::string> words);
  Option& between(int least, int most);
  Option& at_least(double least);
  Option& above(double bound);
  Option& separated_by_commas();
  Option& shows_default();  // in the help
  Option& needs(const Option& other);
  Option& excludes(const Option& other);
  Option& hidden();  // from help and completion

 private:
  CLI::Option& option_;
};

// Where a script's own arguments may stand.
enum class ScriptWords {
  none,
  after_file,  // after the last positional
  mixed,       // after the last positional, mixed with the command's own options up to a `--`
};

class Options {
 public:
  explicit Options(CLI::App& command) : command_(command) {}

  // `names`: "--gpu", "-n,--runs", or "FILE" for a positional. A vector takes several values.
  Option option(const char* names, std::string& value, const char* text);
  Option option(const char* names, std::vector<std::string>& values, const char* text);
  Option option(const char* names, int& value, const char* text);
  Option option(const char* names, std::int64_t& value, const char* text);
  Option option(const char* names, std::uint64_t& value, const char* text);
  Option option(const char* names, double& value, const char* text);
  Option flag(const char* names, bool& value, const char* text);

  void script_words(ScriptWords where, std::vector<std::string>& words) { where_ = where, script_words_ = &words; }

  // Null: the command takes no script arguments.
  ScriptWords where() const { return where_; }
  std::vector<std::string>* script_words() const { return script_words_; }

 private:
  CLI::App& command_;
  ScriptWords where_ = ScriptWords::none;
  std::vector<std::string>* script_words_ = nullptr;
};

}  // namespace rille::cli
