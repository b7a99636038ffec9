// What the prompt shows: the entry behind its prompt, wrapped at the terminal's width, and lines below it. A Picture is
// made without a terminal; Screen turns one Picture after the other into bytes that replace the last one.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rille::cli {

struct Picture {
  std::vector<std::string> rows;  // with colors, none wider than the terminal
  std::size_t cursor_row = 0, cursor_column = 0;
};

struct Drawing {
  std::string prompt, continuation;  // before the first line, and before each other one
  std::string text;
  std::size_t cursor = 0;
  std::string ghost;               // shown behind the text, dim: what the right arrow key would take over
  std::vector<std::string> below;  // lines, which are cut at the width
  bool color = false, lua = true;  // lua: the text is colored as Lua
  std::size_t width = 80;
};

Picture picture_of(const Drawing& drawing);

class Screen {
 public:
  // The bytes that show the picture at the cursor's line, in place of the last one. Of more rows than `height`, those
  // around the cursor are shown.
  std::string show(const Picture& picture, std::size_t height);
  std::string hide();    // removes the picture
  std::string finish();  // leaves the picture, and goes to the line below it
  void forget();         // the terminal was cleared, or shows something else

 private:
  std::size_t rows_ = 0, cursor_row_ = 0;
};

}  // namespace rille::cli
