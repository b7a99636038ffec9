// The prompt's editor on its terminal: LineEditor's keys are read from standard input, its picture is drawn to standard
// output. While it waits for keys it runs the event loop, so that background fibers continue. On a terminal without a
// moving cursor (TERM=dumb) it reads plain lines. Own code, since what Debian has either cannot edit several lines
// (libedit) or is under the GPL (readline). Loop thread only; must not be called from a callback of the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bindings/cli/prompt/line_editor.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::cli {

class Editor {
 public:
  // end: the user pressed Ctrl-D on an empty entry; gone: the terminal has been closed
  enum class Input { entry, end, interrupted, gone };

  Editor(Loop& loop, const std::string& history_file, bool color, const LineEditor::Uses& uses);
  ~Editor();
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  // Reads an entry, which may have several lines.
  Input read(const std::string& prompt, const std::string& continuation, std::string& entry);
  Input read_line(const std::string& question, std::string& line);  // one line, not completed and not kept
  // The text that the next read() begins with.
  void offer(std::string text);
  void add_history(const std::string& entry);
  History& history();
  void interrupt();  // called from the loop: discards what the user is editing
  void hide();       // removes prompt and entry from the screen, for other output
  void draw();       // draws them again, after hide()
  void restore();    // gives the terminal back as it was; for a process that ends now

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rille::cli
