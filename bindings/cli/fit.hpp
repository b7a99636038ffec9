// Fits a table to the terminal's width: the least important columns are shortened, or left out and named below the
// table. Output to a pipe or file is not changed.
#pragma once

#include <initializer_list>

#include "bindings/cli/terminal.hpp"

namespace rille::cli {

// The columns that a text occupies: UTF-8 continuation bytes occupy none. terminal.cpp
std::size_t columns(std::string_view text);

// A table column that may be shortened to a width of `least` characters; 0: it may be left out.
struct Gives {
  const char* heading;
  std::size_t least = 0;
};

// `order`: the first entry shrinks first; a heading may occur twice. A path keeps its end, other text its beginning.
std::string fit_table(const Terminal& terminal, std::vector<std::vector<std::string>> rows,
                      std::initializer_list<Gives> order);
// Fits the table to a width given in characters; 0: unlimited.
std::string fit_table(std::size_t width, std::vector<std::vector<std::string>> rows,
                      std::initializer_list<Gives> order);

// For a table of short columns followed by sentences. If it is wider than the terminal, the first sentence is wrapped
// beside the short columns, and the others below it.
std::string wrap_table(const Terminal& terminal, const std::vector<std::vector<std::string>>& rows);
std::string wrap_table(std::size_t width, const std::vector<std::vector<std::string>>& rows);

}  // namespace rille::cli
