// What a command's `declare` says of its command line. Values go straight into the variables that are named here, which
// keep what they have where an option is not given. CLI11 does the work; only this folder includes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rille::cli {

// One option, to be described further: o.option(..).required().
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
  Option& hidden();  // from people: in no help, in no completion

 private:
  CLI::Option& option_;
};

// Where the words for a script stand.
enum class ScriptWords {
  none,
  after_file,  // after the last positional
  mixed,       // as well; our own options may stand among them, up to a `--`
};

class Options {
 public:
  explicit Options(CLI::App& command) : command_(command) {}

  // `names`: "--gpu", "-n,--runs", or "FILE" of a positional. A vector takes several.
  Option option(const char* names, std::string& value, const char* text);
  Option option(const char* names, std::vector<std::string>& values, const char* text);
  Option option(const char* names, int& value, const char* text);
  Option option(const char* names, std::int64_t& value, const char* text);
  Option option(const char* names, std::uint64_t& value, const char* text);
  Option option(const char* names, double& value, const char* text);
  Option flag(const char* names, bool& value, const char* text);

  void script_words(ScriptWords where, std::vector<std::string>& words) { where_ = where, script_words_ = &words; }

  // What was declared of the script's words; null: nothing.
  ScriptWords where() const { return where_; }
  std::vector<std::string>* script_words() const { return script_words_; }

 private:
  CLI::App& command_;
  ScriptWords where_ = ScriptWords::none;
  std::vector<std::string>* script_words_ = nullptr;
};

}  // namespace rille::cli
