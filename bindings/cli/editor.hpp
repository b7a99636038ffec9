// A line editor for the prompt, behind which libedit stands. While it waits for keys the loop turns, so that background
// fibers go on. Without a terminal it reads plain lines. Loop thread only; never called from inside the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"

namespace rille::cli {

class Editor {
 public:
  enum class Input { line, end, interrupted };  // end: Ctrl-D on an empty line

  // Candidates for the word before the cursor, given the line up to the cursor: full words.
  using Complete = std::function<std::vector<std::string>(const std::string& before)>;

  Editor(Loop& loop, const std::string& history_file);
  ~Editor();
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  Input read(const std::string& prompt, std::string& line);
  void add_history(const std::string& entry);
  void set_complete(Complete complete);
  void interrupt();  // from the loop: the line being edited is dropped
  void hide();       // takes the prompt and the line off the screen
  void draw();       // puts them back

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rille::cli
