#include "bindings/cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "bindings/cli/fit.hpp"
#include "bindings/cli/visible.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"

namespace rille::cli {

namespace {

// Writes the text. Returns 0, or the errno if a part was not written.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    else if (n < 0 && errno != EINTR && errno != EAGAIN) return errno;
  }
  return 0;
}

std::string count(double n, const std::string& unit) {
  if (unit == "bytes") return format_size_bytes(static_cast<std::int64_t>(n));
  return fmt::format("{:.0f}", n);
}

// Cuts the text to `room` columns, between characters.
void cut_columns(std::string& text, std::size_t room) {
  for (std::size_t i = 0, n = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80 && ++n > room) return text.resize(i);
}

std::string progress_text(const Value& p, bool bar) {
  std::string line = p.text("what", "working");
  double done = p.number("done"), total = p.number("total");
  std::string unit = p.text("unit");
  if (p["files_total"].as_number())
    line += fmt::format(": {} of {} files,", p.integer("files"), p.integer("files_total"));
  if (total > 0) {
    int percent = static_cast<int>(100 * done / total);
    if (bar) {
      int filled = static_cast<int>(20 * done / total);
      line += " [";
      for (int i = 0; i < 20; ++i) line += i < filled ? "=" : i == filled ? ">" : " ";
      line += "]";
    }
    line += fmt::format(" {}/{} {}%", count(done, unit), count(total, unit), percent);
  } else if (p["done"].as_number()) {
    line += " " + count(done, unit);
  }
  if (p["loss"].as_number()) line += fmt::format("  loss {:.4f}", p.number("loss"));
  if (p["rate"].as_number()) {
    double rate = p.number("rate");
    std::string of = p.text("rate_unit", unit == "bytes" ? "" : unit);
    if (unit == "bytes") line += "  " + format_size_bytes(static_cast<std::int64_t>(rate)) + "/s";
    else
      line += rate >= 10'000 ? fmt::format("  {:.1f}k {}/s", rate / 1000, of) : fmt::format("  {:.0f} {}/s", rate, of);
  }
  if (p["seconds_left"].as_number() && p.number("seconds_left") >= 0.5)
    line += "  " + format_duration_ms(static_cast<std::int64_t>(p.number("seconds_left") * 1000)) + " left";
  return line;
}

}  // namespace

Terminal::Terminal() : out_tty_(isatty(1)), err_tty_(isatty(2)) {
  const char* none = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  color_ = err_tty_ && !(none && *none) && term && std::string_view(term) != "dumb";
}

int Terminal::width() const {
  winsize size{};
  for (int stream : {2, 1})
    if (ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string Terminal::paint(std::string_view text, const char* sgr) const {
  return color_ ? fmt::format("\x1b[{}m{}\x1b[0m", sgr, text) : std::string(text);
}

std::string Terminal::shown(std::string_view text) const { return err_tty_ ? visible(text) : std::string(text); }

void Terminal::hide() {
  if (hide_) hide_();
  if (!status_.empty() && err_tty_ && !mid_line_) write_all(2, "\r\x1b[K");
}

// A program's color does not reach the status and the prompt.
void Terminal::show() {
  if (err_tty_ && colored_ && (draw_ || (!status_.empty() && !mid_line_))) write_all(2, "\x1b[0m"), colored_ = false;
  if (!status_.empty() && err_tty_ && !mid_line_) write_all(2, status_);
  if (draw_) draw_();
}

// Ends a line and a color of a program's output, before a line of Rille's own on standard error.
void Terminal::begin_line() {
  hide();
  if (err_tty_ && colored_) write_all(2, "\x1b[0m"), colored_ = false;
  if (mid_line_) write_all(2, "\n"), mid_line_ = false;
}

void Terminal::out(std::string_view text) {
  if (text.empty()) return;
  hide();
  std::string shown(text);
  if (out_tty_) shown = (colored_ ? "\x1b[0m" : "") + visible(text), colored_ = false;
  if (int failed = write_all(1, shown); failed && failed != EPIPE) lost_ = failed;
  if (out_tty_) mid_line_ = asks_ = text.back() != '\n';
  show();
}

void Terminal::script_text(std::string_view text) {
  if (text.empty()) return;
  hide();
  const int stream = out_is_data_ ? 2 : 1;
  const bool tty = out_is_data_ ? err_tty_ : out_tty_;
  std::string shown(text);
  if (tty) {
    shown = visible_output(text);
    colored_ = leaves_color(shown, colored_);
    if (mid_line_ && asks_) shown.insert(0, "\n");
    mid_line_ = text.back() != '\n', asks_ = false;
  }
  if (int failed = write_all(stream, shown); stream == 1 && failed && failed != EPIPE) lost_ = failed;
  show();
}

void Terminal::note(std::string_view line) {
  begin_line();
  write_all(2, paint(shown(line), "2") + "\n");
  show();
}

void Terminal::error(const Error& e, bool trace) {
  clear_progress();
  begin_line();
  std::string text = paint(std::string("error (") + std::string(to_string(e.kind)) + "): ", "1;31");
  text += shown(e.message) + "\n";
  if (!e.hint.empty()) text += "  " + paint("hint: ", "1") + shown(e.hint) + "\n";
  if (e.cause) text += "  caused by: " + shown(e.cause->summary()) + "\n";
  if (!e.traceback.empty()) text += paint(shown(e.traceback), "2") + "\n";
  if (trace) text += shown(error_to_value(e).to_json_pretty()) + "\n";
  write_all(2, text);
  show();
}

void Terminal::progress(const Value& p) {
  std::int64_t now = system_clock().monotonic_ns();
  double total = p.number("total"), part = total > 0 ? p.number("done") / total : 0;
  bool complete = total > 0 && part >= 1;
  if (!err_tty_) {
    bool other = p.text("what") != logged_what_;
    if (other) logged_part_ = 0, logged_ns_ = now, logged_what_ = p.text("what");
    // Work that ends in less than two seconds gets no log line.
    if (now - logged_ns_ < 2'000'000'000 || (complete && logged_part_ >= 1)) return;
    if (!complete && now - logged_ns_ < 10'000'000'000 && part - logged_part_ < 0.1) return;
    logged_ns_ = now, logged_part_ = part, logged_what_ = p.text("what");
    write_all(2, progress_text(p, false) + "\n");
    return;
  }
  if (!complete && now - drawn_ns_ < 100'000'000) return;
  drawn_ns_ = now;
  begin_line();
  std::string line = visible_line(progress_text(p, true));
  std::size_t room = static_cast<std::size_t>(std::max(20, width() - 1));
  if (columns(line) > room) line = visible_line(progress_text(p, false));
  cut_columns(line, room);
  status_ = line;
  show();
  if (complete) {
    if (err_tty_) write_all(2, "\n");
    status_.clear();
  }
}

void Terminal::clear_progress() {
  if (status_.empty()) return;
  hide();
  status_.clear();
  if (draw_) draw_();
}

std::size_t columns(std::string_view text) {
  std::size_t n = 0;
  for (char c : text) n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return n;
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i >= widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], columns(row[i]));
    }
  auto is_numeric = [&](std::size_t column) {
    for (std::size_t r = 1; r < rows.size(); ++r) {
      if (column >= rows[r].size() || rows[r][column].empty()) continue;
      std::string_view cell = rows[r][column];
      char c = cell[0];
      if (!((c >= '0' && c <= '9') || c == '$' || (c == '-' && !cell.starts_with("--")))) return false;
    }
    return rows.size() > 1;
  };
  std::vector<bool> numeric;
  for (std::size_t i = 0; i < widths.size(); ++i) numeric.push_back(is_numeric(i));
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string pad(widths[i] - columns(row[i]), ' ');
      if (i) line += "  ";
      line += numeric[i] ? pad + row[i] : row[i] + pad;
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

}  // namespace rille::cli
