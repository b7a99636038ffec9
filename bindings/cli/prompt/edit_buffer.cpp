#include "bindings/cli/prompt/edit_buffer.hpp"

#include <algorithm>
#include <utility>

#include "bindings/cli/prompt/characters.hpp"

namespace rille::cli {

namespace {

bool is_word(char c) {
  const auto u = static_cast<unsigned char>(c);
  return (u >= '0' && u <= '9') || (u >= 'A' && u <= 'Z') || (u >= 'a' && u <= 'z') || u == '_' || u >= 0x80;
}

}  // namespace

void EditBuffer::remember(bool typing) {
  if (!(typing && typing_)) {
    undo_.push_back({text_, cursor_});
    if (undo_.size() > undo_max) undo_.erase(undo_.begin());
  }
  redo_.clear();
  typing_ = typing;
  cutting_ = vertical_ = false;
}

void EditBuffer::set(std::string text) {
  if (text == text_) return text_end();
  remember(false);
  text_ = std::move(text);
  cursor_ = text_.size();
}

void EditBuffer::clear() {
  text_.clear();
  cursor_ = 0;
  undo_.clear();
  redo_.clear();
  typing_ = cutting_ = vertical_ = false;
}

void EditBuffer::insert(std::string_view text) {
  if (text.empty()) return;
  const bool space = text == " " || text == "\n";  // a word is undone at a time
  remember(!space && text.find('\n') == std::string_view::npos);
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void EditBuffer::replace(std::size_t begin, std::size_t end, std::string_view text) {
  remember(false);
  text_.replace(begin, end - begin, text);
  cursor_ = begin + text.size();
}

bool EditBuffer::left() {
  typing_ = cutting_ = vertical_ = false;
  return std::exchange(cursor_, previous_character(text_, cursor_)) != cursor_;
}

bool EditBuffer::right() {
  typing_ = cutting_ = vertical_ = false;
  return std::exchange(cursor_, next_character(text_, cursor_)) != cursor_;
}

std::size_t EditBuffer::word_begin() const {
  std::size_t at = cursor_;
  while (at > 0 && !is_word(text_[at - 1])) --at;
  while (at > 0 && is_word(text_[at - 1])) --at;
  return at;
}

std::size_t EditBuffer::word_stop() const {
  std::size_t at = cursor_;
  while (at < text_.size() && !is_word(text_[at])) ++at;
  while (at < text_.size() && is_word(text_[at])) ++at;
  return at;
}

bool EditBuffer::word_left() {
  typing_ = cutting_ = vertical_ = false;
  return std::exchange(cursor_, word_begin()) != cursor_;
}

bool EditBuffer::word_right() {
  typing_ = cutting_ = vertical_ = false;
  return std::exchange(cursor_, word_stop()) != cursor_;
}

std::size_t EditBuffer::line_begin() const {
  const std::size_t newline = cursor_ == 0 ? std::string::npos : text_.rfind('\n', cursor_ - 1);
  return newline == std::string::npos ? 0 : newline + 1;
}

std::size_t EditBuffer::line_stop() const { return std::min(text_.find('\n', cursor_), text_.size()); }

std::size_t EditBuffer::column() const {
  const std::size_t begin = line_begin();
  return shown_line(std::string_view(text_).substr(begin, cursor_ - begin)).columns;
}

// The last place of the line at or before the wanted column.
void EditBuffer::to_column(std::size_t begin) {
  cursor_ = begin;
  std::size_t columns = 0;
  while (cursor_ < text_.size() && text_[cursor_] != '\n') {
    const std::size_t next = next_character(text_, cursor_);
    columns += shown_line(std::string_view(text_).substr(cursor_, next - cursor_)).columns;
    if (columns > column_) break;
    cursor_ = next;
  }
}

bool EditBuffer::up() {
  if (line_begin() == 0) return false;
  if (!std::exchange(vertical_, true)) column_ = column();
  typing_ = cutting_ = false;
  cursor_ = line_begin() - 1;
  to_column(line_begin());
  return true;
}

bool EditBuffer::down() {
  if (line_stop() == text_.size()) return false;
  if (!std::exchange(vertical_, true)) column_ = column();
  typing_ = cutting_ = false;
  to_column(line_stop() + 1);
  return true;
}

void EditBuffer::line_start() {
  typing_ = cutting_ = vertical_ = false;
  cursor_ = line_begin();
}

void EditBuffer::line_end() {
  typing_ = cutting_ = vertical_ = false;
  cursor_ = line_stop();
}

void EditBuffer::text_start() {
  typing_ = cutting_ = vertical_ = false;
  cursor_ = 0;
}

void EditBuffer::text_end() {
  typing_ = cutting_ = vertical_ = false;
  cursor_ = text_.size();
}

bool EditBuffer::erase_before() {
  if (cursor_ == 0) return false;
  remember(false);
  const std::size_t begin = previous_character(text_, cursor_);
  text_.erase(begin, cursor_ - begin);
  cursor_ = begin;
  return true;
}

bool EditBuffer::erase_after() {
  if (at_end()) return false;
  remember(false);
  text_.erase(cursor_, next_character(text_, cursor_) - cursor_);
  return true;
}

bool EditBuffer::transpose() {
  const std::size_t begin = line_begin();
  const std::size_t behind = cursor_ == line_stop() ? cursor_ : next_character(text_, cursor_);
  const std::size_t middle = previous_character(text_, behind);
  if (middle <= begin) return false;
  const std::size_t first = previous_character(text_, middle);
  remember(false);
  const std::string exchanged = text_.substr(middle, behind - middle) + text_.substr(first, middle - first);
  text_.replace(first, behind - first, exchanged);
  cursor_ = behind;
  return true;
}

void EditBuffer::cut(std::size_t begin, std::size_t end, bool forward) {
  if (begin == end) return;
  const bool more = cutting_;
  remember(false);
  const std::string piece = text_.substr(begin, end - begin);
  cut_ = !more ? piece : forward ? cut_ + piece : piece + cut_;
  text_.erase(begin, end - begin);
  cursor_ = begin;
  cutting_ = true;
}

void EditBuffer::cut_to_line_end() {
  const std::size_t stop = line_stop();  // at the line's end: the newline
  cut(cursor_, stop == cursor_ ? std::min(stop + 1, text_.size()) : stop, true);
}

void EditBuffer::cut_to_line_start() { cut(line_begin(), cursor_, false); }
void EditBuffer::cut_word_before() { cut(word_begin(), cursor_, false); }
void EditBuffer::cut_word_after() { cut(cursor_, word_stop(), true); }

void EditBuffer::paste_cut() {
  if (!cut_.empty()) replace(cursor_, cursor_, cut_);
}

bool EditBuffer::undo() {
  if (undo_.empty()) return false;
  redo_.push_back({std::move(text_), cursor_});
  text_ = std::move(undo_.back().text);
  cursor_ = undo_.back().cursor;
  undo_.pop_back();
  typing_ = cutting_ = vertical_ = false;
  return true;
}

bool EditBuffer::redo() {
  if (redo_.empty()) return false;
  undo_.push_back({std::move(text_), cursor_});
  text_ = std::move(redo_.back().text);
  cursor_ = redo_.back().cursor;
  redo_.pop_back();
  typing_ = cutting_ = vertical_ = false;
  return true;
}

}  // namespace rille::cli
