// Only this class writes to the terminal: script output, log lines and the progress line all pass through it, so that
// a progress line never breaks a prompt, an output line or a log file. On a terminal the progress line is redrawn in
// place, at most 10 times a second; in a pipe or file it becomes one plain line every 10 s or 10 %. NO_COLOR is
// respected. On a terminal, control sequences other than colors are shown as text (visible.hpp), and colors of output
// do not reach Rille's own lines; a pipe or file gets every byte. Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/core/base/error.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::cli {

class Terminal {
 public:
  Terminal();
  void out(std::string_view text);  // writes text of Rille's own to standard output
  // writes output of the script and its calls to standard output, or to standard error after keep_out_for_data()
  void script_text(std::string_view text);
  // Reserves standard output for a command's data (--json); script output then goes to standard error.
  void keep_out_for_data() { out_is_data_ = true; }
  // The errno of a failed write to standard output, or 0. EPIPE is not reported: the reading program has ended.
  int lost() const { return lost_; }
  void note(std::string_view line);  // one dim line to standard error
  // prints the message and the hint; with `trace` also the script's traceback
  void error(const Error& error, bool trace);
  void progress(const Value& progress);  // {what, done, total, unit, files, files_total, loss, rate, ..}
  void clear_progress();
  // Sets functions for a prompt that the user is editing: `hide` is called before output is printed, `draw` after it.
  void set_prompt(std::function<void()> hide, std::function<void()> draw) {
    hide_ = std::move(hide), draw_ = std::move(draw);
  }

  bool out_is_tty() const { return out_tty_; }
  bool color() const { return color_; }
  // adds the color code `sgr` around the text, if colors are on
  std::string paint(std::string_view text, const char* sgr) const;
  int width() const;

 private:
  std::string shown(std::string_view text) const;  // the text as standard error may show it, see visible.hpp
  void hide();
  void show();
  void begin_line();
  bool out_tty_, err_tty_, color_, out_is_data_ = false;
  int lost_ = 0;
  bool mid_line_ = false;
  bool asks_ = false;     // the line is a question of Rille's own, which output may not overwrite
  bool colored_ = false;  // output has left a color on
  std::string status_;
  std::int64_t drawn_ns_ = 0, logged_ns_ = 0;
  double logged_part_ = -1;
  std::string logged_what_;
  std::function<void()> hide_, draw_;
};

// Formats rows as aligned columns, "name  state\nx     live". The first row is a heading; numbers are right-aligned;
// no line ends in spaces.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace rille::cli
