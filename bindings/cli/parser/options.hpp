// The options that a command's `declare` adds. The parser writes each value to the variable passed here; without the
// option on the command line the variable keeps its value. CLI11 does the parsing; only this folder includes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rille::cli {

// One declared option; its methods add settings: o.option(..).required().
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}
  Option& required();
  Option& among(std::vector<std::string> words);
  Option& between(int least, int most);
  Option& at_least(double least);
  Option& above(double bound);
  Option& separated_by_commas();
  Option& one_each();       // for a vector: one value after each name, and the name may be repeated
  Option& shows_default();  // the help shows the variable's initial value
  Option& needs(const Option& other);
  Option& excludes(const Option& other);
  Option& hidden();  // neither help nor completion shows the option

 private:
  CLI::Option& option_;
};

// Where on the command line a script's own arguments may stand.
enum class ScriptWords {
  none,
  after_file,  // after the command's last positional argument
  mixed,       // after the last positional argument, mixed with the command's own options up to a `--`
};

class Options {
 public:
  explicit Options(CLI::App& command) : command_(command) {}

  // `names`: "--gpu", "-n,--runs", or "FILE" for a positional argument. An option with a vector takes several values.
  Option option(const char* names, std::string& value, const char* text);
  Option option(const char* names, std::vector<std::string>& values, const char* text);
  Option option(const char* names, int& value, const char* text);
  Option option(const char* names, std::int64_t& value, const char* text);
  Option option(const char* names, std::uint64_t& value, const char* text);
  Option option(const char* names, double& value, const char* text);
  Option flag(const char* names, bool& value, const char* text);

  void script_words(ScriptWords where, std::vector<std::string>& words) { where_ = where, script_words_ = &words; }

  // Where the script's words stand; `script_words` is null if the command takes no script arguments.
  ScriptWords where() const { return where_; }
  std::vector<std::string>* script_words() const { return script_words_; }

 private:
  CLI::App& command_;
  ScriptWords where_ = ScriptWords::none;
  std::vector<std::string>* script_words_ = nullptr;
};

}  // namespace rille::cli
