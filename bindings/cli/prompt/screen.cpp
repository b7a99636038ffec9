#include "bindings/cli/prompt/screen.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bindings/cli/prompt/characters.hpp"
#include "bindings/cli/prompt/lua_tokens.hpp"

namespace rille::cli {

namespace {

constexpr std::size_t tab_columns = 4;

const char* color_of(LuaToken::Kind kind) {
  switch (kind) {
    case LuaToken::Kind::keyword: return "35";
    case LuaToken::Kind::constant:
    case LuaToken::Kind::number: return "36";
    case LuaToken::Kind::string: return "32";
    case LuaToken::Kind::comment: return "90";
    default: return "";
  }
}

// Writes characters into rows, and wraps them.
class Pen {
 public:
  Pen(std::size_t width, bool color) : width_(std::max<std::size_t>(width, 2)), color_(color) {}

  void set_color(std::string_view sgr) {
    if (!color_ || sgr == sgr_) return;
    row() += "\x1b[0m";
    if (!sgr.empty()) row() += fmt::format("\x1b[{}m", sgr);
    sgr_ = sgr;
  }

  void write(const Shown& character) {
    if (character.columns > width_) return;
    if (column_ + character.columns > width_) new_row();
    row() += character.text;
    column_ += character.columns;
  }

  void write_text(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t next = next_character(text, at);
      write(shown_line(text.substr(at, next - at)));
      at = next;
    }
  }

  void tab() {
    do write({" ", 1});
    while (column_ % tab_columns != 0 && column_ < width_);
  }

  void new_row() {
    const std::string sgr(sgr_);
    if (color_ && !sgr.empty()) row() += "\x1b[0m";
    rows_.emplace_back();
    if (color_ && !sgr.empty()) row() += fmt::format("\x1b[{}m", sgr);
    column_ = 0;
  }

  // Where the next character would stand.
  void mark(Picture& picture) {
    if (column_ >= width_) new_row();
    picture.cursor_row = rows_.size() - 1;
    picture.cursor_column = column_;
  }

  std::string& row() { return rows_.back(); }
  std::vector<std::string> rows() && { return std::move(rows_); }
  std::size_t room() const { return width_ - std::min(column_, width_); }

 private:
  std::size_t width_, column_ = 0;
  bool color_;
  std::string sgr_;
  std::vector<std::string> rows_{1};
};

// A line cut at the width; its own colors are not expected.
std::string cut_line(std::string_view line, std::size_t width, bool color) {
  std::string out;
  std::size_t columns = 0;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t next = next_character(line, at);
    const Shown one = shown_line(line.substr(at, next - at));
    if (columns + one.columns > width) break;
    out += one.text;
    columns += one.columns;
    at = next;
  }
  return color ? "\x1b[90m" + out + "\x1b[0m" : out;
}

}  // namespace

Picture picture_of(const Drawing& d) {
  Picture picture;
  Pen pen(d.width, d.color);
  pen.set_color("1");
  pen.write_text(d.prompt);
  pen.set_color("");
  const std::vector<LuaToken> tokens = d.color && d.lua ? lua_tokens(d.text) : std::vector<LuaToken>();
  std::size_t token = 0;
  for (std::size_t at = 0; at <= d.text.size();) {
    while (token < tokens.size() && tokens[token].end <= at) ++token;
    const bool inside = token < tokens.size() && tokens[token].begin <= at;
    pen.set_color(inside ? color_of(tokens[token].kind) : "");
    if (at == d.cursor) pen.mark(picture);
    if (at == d.text.size()) break;
    const std::size_t next = next_character(d.text, at);
    const std::string_view character = std::string_view(d.text).substr(at, next - at);
    if (character == "\n") {
      pen.set_color("");
      pen.new_row();
      pen.write_text(d.continuation);
    } else if (character == "\t") {
      pen.tab();
    } else {
      pen.write(shown_character(character));
    }
    at = next;
  }
  if (!d.ghost.empty() && pen.room() > 1) { pen.row() += cut_line(d.ghost, pen.room() - 1, d.color); }
  picture.rows = std::move(pen).rows();
  for (const std::string& line : d.below) picture.rows.push_back(cut_line(line, d.width, d.color));
  return picture;
}

std::string Screen::show(const Picture& picture, std::size_t height) {
  height = std::max<std::size_t>(height, 1);
  std::size_t first = 0, count = picture.rows.size();
  if (count > height) {
    count = height;
    first =
        std::min(picture.cursor_row > height / 2 ? picture.cursor_row - height / 2 : 0, picture.rows.size() - height);
  }
  std::string out = "\r";
  if (cursor_row_ > 0) out += fmt::format("\x1b[{}A", cursor_row_);
  for (std::size_t i = 0; i < count; ++i) {  // erased before it is written: behind a full row the last column would go
    if (i > 0) out += "\r\n";
    out += i + 1 == count ? "\x1b[J" : "\x1b[K";
    out += picture.rows[first + i];
  }
  const std::size_t row = picture.cursor_row - first;
  if (count - 1 > row) out += fmt::format("\x1b[{}A", count - 1 - row);
  out += "\r";
  if (picture.cursor_column > 0) out += fmt::format("\x1b[{}C", picture.cursor_column);
  rows_ = count;
  cursor_row_ = row;
  return out;
}

std::string Screen::hide() {
  std::string out = "\r";
  if (cursor_row_ > 0) out += fmt::format("\x1b[{}A", cursor_row_);
  out += "\x1b[J";
  forget();
  return out;
}

std::string Screen::finish() {
  std::string out;
  if (rows_ > cursor_row_ + 1) out += fmt::format("\x1b[{}B", rows_ - 1 - cursor_row_);
  out += "\r\n";
  forget();
  return out;
}

void Screen::forget() { rows_ = cursor_row_ = 0; }

}  // namespace rille::cli
