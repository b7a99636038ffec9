// The REPL's line editor, based on libedit. While the editor waits for keys it runs the event loop, so that
// background fibers continue. Without a terminal the editor reads plain lines. Loop thread only; must not be called
// from a callback of the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"

namespace rille::cli {

class Editor {
 public:
  enum class Input { line, end, interrupted };  // end: the user pressed Ctrl-D on an empty line

  // Returns the possible completions of the word before the cursor, as full words; `before` is the line up to the
  // cursor.
  using Complete = std::function<std::vector<std::string>(const std::string& before)>;

  Editor(Loop& loop, const std::string& history_file);
  ~Editor();
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  Input read(const std::string& prompt, std::string& line);
  void add_history(const std::string& entry);
  void set_complete(Complete complete);
  void interrupt();  // called from the loop: discards the line that the user is editing
  void hide();       // removes the prompt and the line from the screen
  void draw();       // draws the prompt and the line again, after hide()

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rille::cli
