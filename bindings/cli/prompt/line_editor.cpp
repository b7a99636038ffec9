#include "bindings/cli/prompt/line_editor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bindings/cli/prompt/characters.hpp"
#include "bindings/cli/prompt/lua_tokens.hpp"

namespace rille::cli {

namespace {

using Kind = Key::Kind;
using Outcome = LineEditor::Outcome;

constexpr std::size_t indent_columns = 2;

std::string common_start(const std::vector<std::string>& words) {
  std::string common = words.front();
  for (const std::string& word : words) {
    const auto ends = std::mismatch(common.begin(), common.end(), word.begin(), word.end());
    common.erase(ends.first, common.end());
  }
  while (!common.empty() && (static_cast<unsigned char>(common.back()) & 0xc0) == 0x80) common.pop_back();
  if (!common.empty() && static_cast<unsigned char>(common.back()) >= 0xc0) common.pop_back();
  return common;
}

// Whether the text ends inside a string or comment of several lines, which is not indented.
bool ends_in_long_text(const std::string& text) {
  const std::vector<LuaToken> tokens = lua_tokens(text);
  return !tokens.empty() && tokens.back().open && tokens.back().end == text.size() &&
         text[tokens.back().begin] != '"' && text[tokens.back().begin] != '\'';
}

bool closes_block(std::string_view line) {
  for (const std::string_view word : {"end", "else", "elseif", "until", "}", ")"}) {
    if (!line.starts_with(word)) continue;
    if (line.size() == word.size() || word.size() == 1) return true;
    const char next = line[word.size()];
    if (next == ' ' || next == ')' || next == ',' || next == ';' || next == '}') return true;
  }
  return false;
}

}  // namespace

void LineEditor::begin(std::string prompt, std::string continuation) {
  prompt_ = std::move(prompt);
  continuation_ = std::move(continuation);
  buffer_.clear();
  search_.reset();
  menu_.reset();
  recalled_.reset();
}

Outcome LineEditor::press(const Key& key) {
  if (search_) {
    bool handled = false;
    const Outcome outcome = press_in_search(key, handled);
    if (handled) return outcome;
  }
  if (menu_ && key.kind != Kind::tab && key.kind != Kind::back_tab) {
    const bool chose = menu_->chosen.has_value();
    menu_.reset();
    if (key.kind == Kind::escape || (chose && key.kind == Kind::enter)) return Outcome::editing;
  }
  switch (key.kind) {
    case Kind::enter: return enter();
    case Kind::control: return press_control(key.text[0]);
    case Kind::alt: press_alt(key.text); break;
    case Kind::tab: complete(false); break;
    case Kind::back_tab: complete(true); break;
    case Kind::text:
    case Kind::paste:
    case Kind::alt_enter:
    case Kind::backspace:
    case Kind::alt_backspace:
    case Kind::erase: edit(key); break;
    default: move(key);
  }
  return Outcome::editing;
}

Outcome LineEditor::press_control(char letter) {
  switch (letter) {
    case 'D':
      if (buffer_.text().empty()) return Outcome::end;
      edit({Kind::erase});
      break;
    case 'Z': return Outcome::suspend;
    case 'L': return Outcome::clear_screen;
    case 'A': move({Kind::home}); break;
    case 'E': move({Kind::end}); break;
    case 'B': move({Kind::left}); break;
    case 'F': move({Kind::right}); break;
    case 'P': move({Kind::up}); break;
    case 'N': move({Kind::down}); break;
    case 'K': buffer_.cut_to_line_end(); break;
    case 'U': buffer_.cut_to_line_start(); break;
    case 'W': buffer_.cut_word_before(); break;
    case 'Y': buffer_.paste_cut(); break;
    case 'T': buffer_.transpose(); break;
    case '_': buffer_.undo(); break;
    case 'R': search_ = Search{"", buffer_.text(), std::nullopt}; break;
    default: break;
  }
  return Outcome::editing;
}

void LineEditor::press_alt(const std::string& character) {
  if (character == "b") buffer_.word_left();
  else if (character == "f") buffer_.word_right();
  else if (character == "d") buffer_.cut_word_after();
  else if (character == "_") buffer_.redo();
  else if (character == "<") buffer_.text_start();
  else if (character == ">") buffer_.text_end();
}

void LineEditor::move(const Key& key) {
  switch (key.kind) {
    case Kind::left: buffer_.left(); break;
    case Kind::right:
      if (!take_suggestion()) buffer_.right();
      break;
    case Kind::word_left: buffer_.word_left(); break;
    case Kind::word_right: buffer_.word_right(); break;
    case Kind::home: buffer_.line_start(); break;
    case Kind::end:
      if (!take_suggestion()) buffer_.line_end();
      break;
    case Kind::up:
      if (recalled_ || !buffer_.up()) older();
      break;
    case Kind::down:
      if (recalled_ || !buffer_.down()) newer();
      break;
    case Kind::page_up: older(); break;
    case Kind::page_down: newer(); break;
    default: return;
  }
  const bool vertical =
      key.kind == Kind::up || key.kind == Kind::down || key.kind == Kind::page_up || key.kind == Kind::page_down;
  if (!vertical) recalled_.reset();
}

void LineEditor::edit(const Key& key) {
  recalled_.reset();
  switch (key.kind) {
    case Kind::text:
    case Kind::paste: buffer_.insert(key.text); break;
    case Kind::alt_enter: new_line(); break;
    case Kind::alt_backspace: buffer_.cut_word_before(); break;
    case Kind::erase: buffer_.erase_after(); break;
    default: {
      const std::string line = buffer_.text().substr(buffer_.line_begin(), buffer_.cursor() - buffer_.line_begin());
      const bool blank = !line.empty() && line.find_first_not_of(' ') == std::string::npos;
      const std::size_t step = blank && line.size() % indent_columns == 0 ? indent_columns : 1;
      for (std::size_t i = 0; i < step; ++i) buffer_.erase_before();
    }
  }
}

Outcome LineEditor::enter() {
  if (uses_.unfinished && uses_.unfinished(buffer_.text())) {
    new_line();
    return Outcome::editing;
  }
  buffer_.text_end();
  outdent();
  return Outcome::entry;
}

// "end" and its like stand below the line that began their block. Only an indent that new_line() made is taken back.
void LineEditor::outdent() {
  const std::size_t begin = buffer_.line_begin();
  const std::string& text = buffer_.text();
  const std::size_t stop = std::min(text.find_first_not_of(' ', begin), text.size());
  const std::size_t indent = std::exchange(made_indent_, 0);
  if (indent < indent_columns || stop - begin != indent || !buffer_.at_end()) return;
  if (!closes_block(std::string_view(text).substr(stop))) return;
  buffer_.replace(begin, begin + indent_columns, "");
  buffer_.text_end();
}

// A line that is indented as the one before it, and further if that one has opened a block.
void LineEditor::new_line() {
  recalled_.reset();
  if (ends_in_long_text(buffer_.before())) return buffer_.insert("\n");
  outdent();
  const std::string line = buffer_.before().substr(buffer_.line_begin());
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const int opened = lua_depth(line) + (closes_block(std::string_view(line).substr(indent)) ? 1 : 0);
  made_indent_ = indent + (opened > 0 ? indent_columns : 0);
  buffer_.insert("\n" + std::string(made_indent_, ' '));
}

void LineEditor::complete(bool backwards) {
  if (menu_) {
    const std::size_t count = menu_->of.words.size();
    const std::size_t last = menu_->chosen.value_or(backwards ? 0 : count - 1);
    return choose((last + (backwards ? count - 1 : 1)) % count);
  }
  const std::string before = buffer_.before();
  const std::size_t begin = buffer_.line_begin();
  if (before.find_first_not_of(" \t", begin) == std::string::npos) {  // nothing to complete: indents
    if (!backwards) buffer_.insert(std::string(indent_columns, ' '));
    return;
  }
  if (!uses_.complete) return;
  Completions found = uses_.complete(before);
  if (found.words.empty() || found.begin > before.size()) return;
  const std::string common = common_start(found.words);
  const std::string typed = before.substr(found.begin);
  if (common != typed && common.size() >= typed.size()) {
    buffer_.replace(found.begin, before.size(), common);
    recalled_.reset();
  }
  if (found.words.size() > 1) menu_ = Menu{std::move(found), std::nullopt, buffer_.cursor()};
}

void LineEditor::choose(std::size_t index) {
  buffer_.replace(menu_->of.begin, menu_->end, menu_->of.words[index]);
  menu_->end = buffer_.cursor();
  menu_->chosen = index;
  recalled_.reset();
}

void LineEditor::older() {
  if (!recalled_) {
    draft_ = buffer_.text();
    prefix_ = buffer_.before();
  }
  const std::size_t from = recalled_.value_or(history_.size());
  if (const auto found = history_.older(from, prefix_, buffer_.text())) go_to(found);
}

void LineEditor::newer() {
  if (!recalled_) return;
  go_to(history_.newer(*recalled_, prefix_, buffer_.text()));
}

void LineEditor::go_to(std::optional<std::size_t> entry) {
  recalled_ = entry;
  buffer_.set(entry ? history_.at(*entry) : draft_);
}

std::string LineEditor::suggestion() const {
  const std::string& text = buffer_.text();
  if (text.empty() || !buffer_.at_end() || recalled_ || search_ || menu_) return "";
  const auto found = history_.older(history_.size(), text, text);
  return found ? history_.at(*found).substr(text.size()) : "";
}

bool LineEditor::take_suggestion() {
  const std::string rest = suggestion();
  if (rest.empty()) return false;
  buffer_.insert(rest);
  return true;
}

Outcome LineEditor::press_in_search(const Key& key, bool& handled) {
  handled = true;
  const bool again = key == Key{Kind::control, "R"};
  if (key.kind == Kind::text || key.kind == Kind::paste) {
    search_->part += key.text;
    search_older(search_->found ? *search_->found + 1 : history_.size());
  } else if (again && !search_->part.empty()) {
    search_older(search_->found.value_or(history_.size()));
  } else if (key.kind == Kind::backspace) {
    search_->part.erase(previous_character(search_->part, search_->part.size()));
    search_->found.reset();
    search_older(history_.size());
  } else if (key == Key{Kind::control, "G"}) {
    buffer_.set(search_->before);
    search_.reset();
  } else if (!again) {
    search_.reset();
    handled = key.kind == Kind::escape;
  }
  return Outcome::editing;
}

void LineEditor::search_older(std::size_t before) {
  if (search_->part.empty()) return buffer_.set(search_->before);
  const auto found = history_.containing(before, search_->part);
  if (!found) return;
  search_->found = found;
  buffer_.set(history_.at(*found));
}

std::vector<std::string> LineEditor::menu_lines(std::size_t width, std::size_t rows_max) const {
  const std::vector<std::string>& words = menu_->of.words;
  std::size_t longest = 1;
  for (const std::string& word : words) longest = std::max(longest, shown_line(word).columns);
  const std::size_t cell = std::min(longest + 2, width), across = std::max<std::size_t>(1, width / cell);
  const std::size_t rows = (words.size() + across - 1) / across,
                    shown = std::min(rows, std::max<std::size_t>(rows_max, 1));
  const std::size_t chosen_row = menu_->chosen.value_or(0) / across;
  const std::size_t first = std::min(chosen_row - std::min(chosen_row, shown / 2), rows - shown);
  std::vector<std::string> lines;
  for (std::size_t row = first; row < first + shown; ++row) {
    std::string line;
    for (std::size_t i = row * across; i < std::min((row + 1) * across, words.size()); ++i) {
      const Shown word = shown_line(words[i]);
      const std::string mark = menu_->chosen == i ? "\u203a" : " ";
      line += mark + word.text + std::string(cell - std::min(cell, word.columns + 1), ' ');
    }
    lines.push_back(line);
  }
  if (shown < rows)
    lines.push_back(fmt::format(" {} of {} shown", std::min(shown * across, words.size()), words.size()));
  return lines;
}

Drawing LineEditor::drawing(std::size_t width, std::size_t height, bool color) {
  Drawing d;
  d.prompt = prompt_;
  d.continuation = continuation_;
  d.text = buffer_.text();
  d.cursor = buffer_.cursor();
  d.color = color;
  d.lua = !d.text.starts_with("?") && !d.text.starts_with(":");
  d.width = width;
  if (search_)
    d.prompt = fmt::format("search {}{}> ", search_->part, search_->found || search_->part.empty() ? "" : " (none)");
  if (menu_) d.below = menu_lines(width, std::max<std::size_t>(height / 2, 1));
  const std::string rest = suggestion();
  d.ghost = rest.substr(0, rest.find('\n'));
  if (!search_ && !menu_ && uses_.hint)
    if (std::string hint = uses_.hint(buffer_.before()); !hint.empty()) d.below.push_back(hint);
  return d;
}

}  // namespace rille::cli
