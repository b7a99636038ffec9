// A table on a terminal keeps to its width: what matters least becomes shorter, or is left out and named below. Into a
// pipe or a file it goes as it is.
#pragma once

#include <initializer_list>

#include "bindings/cli/terminal.hpp"

namespace rille::cli {

// Columns that a line takes: UTF-8 continuation bytes take none. terminal.cpp
std::size_t columns(std::string_view text);

// A column that may give way: shortened to `least` columns; 0: left out.
struct Gives {
  const char* heading;
  std::size_t least = 0;
};

// `order`: the first gives way first; a heading may stand there twice. A path keeps its end, other text its beginning.
std::string fit_table(const Terminal& terminal, std::vector<std::vector<std::string>> rows,
                      std::initializer_list<Gives> order);
// The same for a width of that many columns; 0: as it is.
std::string fit_table(std::size_t width, std::vector<std::vector<std::string>> rows,
                      std::initializer_list<Gives> order);

// A table whose first columns are short and whose others are sentences. Where it is wider than the terminal, the first
// sentence is wrapped beside the short ones, and the others below it.
std::string wrap_table(const Terminal& terminal, const std::vector<std::vector<std::string>>& rows);
std::string wrap_table(std::size_t width, const std::vector<std::vector<std::string>>& rows);

}  // namespace rille::cli
