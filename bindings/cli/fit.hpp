// Fits a table to the terminal's width: the least important columns are shortened, or left out and named below the
// table. Output to a pipe or file is not changed.
#pragma once

#include <initializer_list>

#include "bindings/cli/terminal.hpp"

namespace rille::cli {

// How many terminal columns the text occupies. Counts UTF-8 characters as one column each. Defined in terminal.cpp.
std::size_t columns(std::string_view text);

// A table column that may be shortened, but not below `least` characters; least = 0: the column may be left out.
struct Gives {
  const char* heading;
  std::size_t least = 0;
};

// Shrinks the columns in the given order until the table fits; a heading may occur twice in `order`. A shortened path
// keeps its end, other text its beginning.
std::string fit_table(const Terminal& terminal, std::vector<std::vector<std::string>> rows,
                      std::initializer_list<Gives> order);
// Fits the table to a width given in characters; 0: unlimited.
std::string fit_table(std::size_t width, std::vector<std::vector<std::string>> rows,
                      std::initializer_list<Gives> order);

// Fits a table of short columns followed by sentence columns. If the table is wider than the terminal, the first
// sentence column is wrapped beside the short columns, and later sentences are printed below it.
std::string wrap_table(const Terminal& terminal, const std::vector<std::vector<std::string>>& rows);
std::string wrap_table(std::size_t width, const std::vector<std::vector<std::string>>& rows);

}  // namespace rille::cli
