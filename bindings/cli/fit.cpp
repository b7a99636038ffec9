#include "bindings/cli/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace rille::cli {

namespace {

using Rows = std::vector<std::vector<std::string>>;

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }  // a UTF-8 continuation byte

std::size_t width_of(const Rows& rows, std::size_t column) {
  std::size_t most = 0;
  for (const auto& row : rows)
    if (column < row.size()) most = std::max(most, columns(row[column]));
  return most;
}

std::size_t width_of(const Rows& rows) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < rows.front().size(); ++i) sum += width_of(rows, i) + (i ? 2 : 0);
  return sum;
}

std::string shortened(const std::string& text, std::size_t most) {
  if (columns(text) <= most) return text;
  std::size_t from = 0, to = text.size();
  const bool path = text.front() == '/';
  while (columns(std::string_view(text).substr(from, to - from)) > most - 1) {
    if (path) do
        ++from;
      while (continues(text[from]));
    else do
        --to;
      while (continues(text[to]));
  }
  return path ? "…" + text.substr(from) : text.substr(0, to) + "…";
}

std::size_t width_of(const Terminal& terminal) {
  return terminal.out_is_tty() ? static_cast<std::size_t>(std::max(1, terminal.width())) : 0;
}

// Wraps text to lines of at most `most` columns; a word longer than `most` is not split.
std::vector<std::string> wrapped(const std::string& text, std::size_t most) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (lines.empty() || columns(lines.back()) + 1 + columns(word) > most) lines.push_back(word);
    else lines.back() += " " + word;
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::string fit_table(std::size_t width, Rows rows, std::initializer_list<Gives> order) {
  std::vector<std::string> without;
  for (const Gives& give : order) {
    const std::size_t wide = width_of(rows);
    if (!width || wide <= width) break;
    const auto at = std::find(rows.front().begin(), rows.front().end(), give.heading);
    if (at == rows.front().end()) continue;
    const auto column = static_cast<std::size_t>(at - rows.front().begin());
    const std::size_t now = width_of(rows, column), excess = wide - width;
    if (give.least == 0) {
      without.emplace_back(give.heading);
      for (auto& row : rows)
        if (column < row.size()) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
      continue;
    }
    const std::size_t most = std::max(give.least, now > excess ? now - excess : 0);
    for (auto& row : rows)
      if (column < row.size()) row[column] = shortened(row[column], most);
  }
  std::string out = format_table(rows);
  if (!without.empty())
    out += fmt::format("no room for {}: in a pipe (| cat) nothing is left out\n", fmt::join(without, ", "));
  return out;
}

std::string fit_table(const Terminal& terminal, Rows rows, std::initializer_list<Gives> order) {
  return fit_table(width_of(terminal), std::move(rows), order);
}

std::string wrap_table(std::size_t width, const Rows& rows) {
  if (!width || width_of(rows) <= width) return format_table(rows);
  const std::size_t first = width_of(rows, 0), second = width_of(rows, 1), indent = first + second + 4;
  const std::size_t most = std::max<std::size_t>(20, width > indent ? width - indent : 0);
  std::string out;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto& row = rows[i];
    std::string head = fmt::format("{:{}}  {:{}}  ", row[0], first, row[1], second);
    for (std::size_t column = 2; column < row.size(); ++column)
      for (const std::string& line : wrapped(row[column], most)) {
        out += head + line + "\n";
        head = std::string(indent, ' ');
      }
  }
  return out;
}

std::string wrap_table(const Terminal& terminal, const Rows& rows) { return wrap_table(width_of(terminal), rows); }

}  // namespace rille::cli
