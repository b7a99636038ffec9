// The one owner of the terminal: what scripts print, log lines and the progress line all pass through it, so that a
// progress line never breaks a prompt, an output line or a log file. On a terminal the line is redrawn in place (at
// most 10 times a second); into a pipe or a file it becomes one plain line every 10 s or 10 %. NO_COLOR is respected.
// Loop thread only.
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
  void out(std::string_view text);          // to standard output, as it is
  void script_text(std::string_view text);  // what scripts print: to standard output, or see below
  // Standard output is for data alone (--json): what scripts print goes to standard error.
  void keep_out_for_data() { out_is_data_ = true; }
  // Why text for standard output was lost (errno; a reader that left is no loss), or 0.
  int lost() const { return lost_; }
  void note(std::string_view line);            // one dim line to standard error
  void error(const Error& error, bool trace);  // what failed, the hint, the script's traceback
  void progress(const Value& progress);        // {what, done, total, unit, loss, rate, rate_unit, seconds_left}
  void clear_progress();
  // What stands on the screen besides the progress line (a prompt being edited): taken away before output, drawn after.
  void set_prompt(std::function<void()> hide, std::function<void()> draw) {
    hide_ = std::move(hide), draw_ = std::move(draw);
  }

  bool out_is_tty() const { return out_tty_; }
  bool color() const { return color_; }
  std::string paint(std::string_view text, const char* sgr) const;  // when colours are on
  int width() const;

 private:
  void hide();
  void show();
  bool out_tty_, err_tty_, color_, out_is_data_ = false;
  int lost_ = 0;
  bool mid_line_ = false;
  std::string status_;
  std::int64_t drawn_ns_ = 0, logged_ns_ = 0;
  double logged_part_ = -1;
  std::string logged_what_;
  std::function<void()> hide_, draw_;
};

// "name  state\nx     live": columns aligned, the first row a heading; no trailing blanks. Numbers right-aligned.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace rille::cli
