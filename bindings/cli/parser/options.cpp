#include "bindings/cli/parser/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>

namespace rille::cli {

namespace {

CLI::Validator number_from(double least, bool above) {
  return CLI::Validator(
      [least, above](std::string& text) {
        char* end = nullptr;
        const double n = std::strtod(text.c_str(), &end);
        const bool good = !text.empty() && *end == '\0' && std::isfinite(n) && (above ? n > least : n >= least);
        return good ? std::string()
                    : fmt::format("'{}' is not a number {} {}", text, above ? "above" : "from", least) +
                          (above ? "" : " on");
      },
      "NUMBER");
}

}  // namespace

Option& Option::required() { return option_.required(), *this; }
Option& Option::among(std::vector<std::string> words) { return option_.check(CLI::IsMember(std::move(words))), *this; }
Option& Option::between(int least, int most) { return option_.check(CLI::Range(least, most)), *this; }
Option& Option::at_least(double least) { return option_.check(number_from(least, false)), *this; }
Option& Option::above(double bound) { return option_.check(number_from(bound, true)), *this; }
Option& Option::separated_by_commas() { return option_.delimiter(','), *this; }
Option& Option::one_each() { return option_.allow_extra_args(false), *this; }
Option& Option::shows_default() { return option_.capture_default_str(), *this; }
Option& Option::needs(const Option& other) { return option_.needs(&other.option_), *this; }
Option& Option::excludes(const Option& other) { return option_.excludes(&other.option_), *this; }
Option& Option::hidden() { return option_.group(""), *this; }

Option Options::option(const char* names, std::string& value, const char* text) {
  return Option(*command_.add_option(names, value, text));
}

Option Options::option(const char* names, std::vector<std::string>& values, const char* text) {
  return Option(*command_.add_option(names, values, text));
}

Option Options::option(const char* names, int& value, const char* text) {
  return Option(*command_.add_option(names, value, text));
}

Option Options::option(const char* names, std::int64_t& value, const char* text) {
  return Option(*command_.add_option(names, value, text));
}

Option Options::option(const char* names, std::uint64_t& value, const char* text) {
  return Option(*command_.add_option(names, value, text));
}

Option Options::option(const char* names, double& value, const char* text) {
  return Option(*command_.add_option(names, value, text));
}

Option Options::flag(const char* names, bool& value, const char* text) {
  return Option(*command_.add_flag(names, value, text));
}

}  // namespace rille::cli
