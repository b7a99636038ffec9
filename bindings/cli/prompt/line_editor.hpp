// The prompt's editor without its terminal: takes keys, and says what to show. An entry may have several lines; Enter
// ends it when `unfinished` says no, and adds a line otherwise. Keys are those of Emacs and of shells:
//   Ctrl-A Ctrl-E Home End, arrows, Alt-B Alt-F Ctrl-Left Ctrl-Right: moves
//   Ctrl-K Ctrl-U Ctrl-W Alt-D Alt-Backspace: cuts; Ctrl-Y: puts back; Ctrl-_: undo; Alt-_: redo; Ctrl-T: exchanges
//   Up Down Ctrl-P Ctrl-N: lines of the entry, then earlier entries that begin with what stands before the cursor
//   Ctrl-R: searches earlier entries; Tab: completes, Tab again: the next of several; Alt-Enter: a new line
//   Right or End at the end: takes the suggestion, which is the rest of the newest entry that begins so
// Nothing here waits or draws.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/prompt/edit_buffer.hpp"
#include "bindings/cli/prompt/history.hpp"
#include "bindings/cli/prompt/keys.hpp"
#include "bindings/cli/prompt/screen.hpp"

namespace rille::cli {

struct Completions {
  std::size_t begin = 0;  // where the word begins that is completed; it ends at the cursor
  std::vector<std::string> words;
};

class LineEditor {
 public:
  enum class Outcome { editing, entry, end, suspend, clear_screen };

  struct Uses {
    std::function<bool(const std::string& text)> unfinished;
    std::function<Completions(const std::string& before)> complete;
    std::function<std::string(const std::string& before)> hint;  // a line below the entry; "": none
  };

  LineEditor(History& history, Uses uses) : history_(history), uses_(std::move(uses)) {}

  void begin(std::string prompt, std::string continuation);  // a new, empty entry
  Outcome press(const Key& key);
  // `height`: of the terminal; lists of completions take at most half of it.
  Drawing drawing(std::size_t width, std::size_t height, bool color);
  const std::string& text() const { return buffer_.text(); }
  void set(const std::string& text) { buffer_.set(text); }

 private:
  struct Search {
    std::string part, before;  // `before`: the text to go back to
    std::optional<std::size_t> found;
  };
  struct Menu {  // completions to choose from
    Completions of;
    std::optional<std::size_t> chosen;
    std::size_t end = 0;  // behind the word that stands in the text
  };

  Outcome press_control(char letter);
  void press_alt(const std::string& character);
  Outcome press_in_search(const Key& key, bool& handled);
  void search_older(std::size_t before);
  void move(const Key& key);
  void edit(const Key& key);
  Outcome enter();
  void new_line();
  void outdent();
  void complete(bool backwards);
  void choose(std::size_t index);
  void older();
  void newer();
  void go_to(std::optional<std::size_t> entry);
  std::string suggestion() const;
  bool take_suggestion();
  std::vector<std::string> menu_lines(std::size_t width, std::size_t rows_max) const;

  History& history_;
  Uses uses_;
  EditBuffer buffer_;
  std::string prompt_, continuation_;
  std::optional<Search> search_;
  std::optional<Menu> menu_;
  std::optional<std::size_t> recalled_;  // the history's entry that is shown
  std::string draft_;                    // what was typed before one was recalled
  std::string prefix_;                   // with which recalled entries begin
  std::size_t made_indent_ = 0;          // of the newest line
};

}  // namespace rille::cli
