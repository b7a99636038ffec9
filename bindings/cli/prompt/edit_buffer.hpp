// The text of an entry, its cursor, what was cut, and what can be undone. The text may have several lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rille::cli {

class EditBuffer {
 public:
  static constexpr std::size_t undo_max = 500;

  const std::string& text() const { return text_; }
  std::size_t cursor() const { return cursor_; }
  std::string before() const { return text_.substr(0, cursor_); }
  bool at_end() const { return cursor_ == text_.size(); }

  void set(std::string text);  // the cursor goes to its end; can be undone
  void clear();                // forgets all but what was cut
  void insert(std::string_view text);
  // Puts `text` in the place of the bytes from `begin` to `end`, and the cursor behind it.
  void replace(std::size_t begin, std::size_t end, std::string_view text);

  // Each of these gives whether anything moved or changed.
  bool left();
  bool right();
  bool word_left();
  bool word_right();
  bool up();
  bool down();
  void line_start();
  void line_end();
  void text_start();
  void text_end();
  bool erase_before();
  bool erase_after();
  bool transpose();  // exchanges the two characters at the cursor

  void cut_to_line_end();
  void cut_to_line_start();
  void cut_word_before();
  void cut_word_after();
  void paste_cut();
  bool undo();
  bool redo();

  std::size_t line_begin() const;  // of the cursor's line
  std::size_t line_stop() const;

 private:
  struct Version {
    std::string text;
    std::size_t cursor;
  };
  void remember(bool typing);
  void cut(std::size_t begin, std::size_t end, bool forward);
  std::size_t word_begin() const;
  std::size_t word_stop() const;
  std::size_t column() const;
  void to_column(std::size_t line_begin);

  std::string text_, cut_;
  std::size_t cursor_ = 0;
  std::vector<Version> undo_, redo_;
  bool typing_ = false;    // the last change was typing, which is undone as a whole
  bool cutting_ = false;   // the last change was a cut: another one adds to it
  bool vertical_ = false;  // the last move was up or down: column_ is where the cursor wants to be
  std::size_t column_ = 0;
};

}  // namespace rille::cli
