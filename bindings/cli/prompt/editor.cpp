#include "bindings/cli/prompt/editor.hpp"

#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "bindings/cli/prompt/characters.hpp"

namespace rille::cli {

namespace {

constexpr int escape_wait_ms = 50;  // how long the rest of a key may take after its escape
constexpr std::string_view pastes_on = "\x1b[?2004h", pastes_off = "\x1b[?2004l", clear = "\x1b[H\x1b[2J";

bool can_move_cursor() {
  const char* term = std::getenv("TERM");
  return term && *term && std::string_view(term) != "dumb" && isatty(1);
}

void write_out(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(1, bytes.data(), bytes.size());
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR && errno != EAGAIN) return;  // the terminal is gone: the next read tells
  }
}

winsize size_of_terminal() {
  winsize size{};
  if (ioctl(1, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = 80;
  if (size.ws_row == 0) size.ws_row = 24;
  return size;
}

template <class Handle>
void close_handle(Handle* handle) {
  uv_close(reinterpret_cast<uv_handle_t*>(handle), [](uv_handle_t* h) { delete reinterpret_cast<Handle*>(h); });
}

}  // namespace

struct Editor::State {
  Loop& loop;
  bool color, moves;
  History history;
  LineEditor editor;
  KeyReader keys;
  Screen screen;
  std::function<bool(const std::string&)> unfinished;  // for plain lines
  std::string offered;
  bool reading = false, hidden = false, raw = false;
  bool readable = false, interrupted = false, resized = false, late = false;
  termios cooked{};
  uv_poll_t* poll = new uv_poll_t;
  uv_signal_t* window = new uv_signal_t;
  uv_timer_t* timer = new uv_timer_t;

  State(Loop& l, const std::string& file, bool c, const LineEditor::Uses& uses)
      : loop(l), color(c), moves(can_move_cursor()), history(file), editor(history, uses), unfinished(uses.unfinished) {
    uv_poll_init(l.uv(), poll, 0);
    uv_signal_init(l.uv(), window);
    uv_timer_init(l.uv(), timer);
    poll->data = window->data = timer->data = this;
    for (uv_handle_t* h : {reinterpret_cast<uv_handle_t*>(poll), reinterpret_cast<uv_handle_t*>(window),
                           reinterpret_cast<uv_handle_t*>(timer)})
      uv_unref(h);
  }
  ~State() {
    set_raw(false);
    close_handle(poll);
    close_handle(window);
    close_handle(timer);
  }

  // Raw: each key comes at once and is not echoed. Ctrl-C remains a signal, which the loop handles.
  void set_raw(bool on) {
    if (on == raw) return;
    if (!on) {
      write_out(pastes_off);
      tcsetattr(0, TCSADRAIN, &cooked);
    } else {
      if (tcgetattr(0, &cooked) != 0) return;
      termios mode = cooked;
      mode.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IGNCR | IXON | ISTRIP | PARMRK);
      mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ECHONL | IEXTEN);
      mode.c_lflag |= ISIG;
      mode.c_cc[VQUIT] = mode.c_cc[VSUSP] = _POSIX_VDISABLE;
      mode.c_cc[VMIN] = 1;
      mode.c_cc[VTIME] = 0;
      tcsetattr(0, TCSADRAIN, &mode);
      write_out(pastes_on);
    }
    raw = on;
  }

  void paint() {
    const winsize size = size_of_terminal();
    write_out(screen.show(picture_of(editor.drawing(size.ws_col, size.ws_row, color)), size.ws_row));
  }

  // Runs the loop until the terminal has bytes to read, or `timeout_ms` have passed, or the editor was interrupted.
  void wait(int timeout_ms) {
    readable = late = false;
    uv_poll_start(poll, UV_READABLE, [](uv_poll_t* p, int, int) { static_cast<State*>(p->data)->readable = true; });
    if (timeout_ms >= 0)
      uv_timer_start(
          timer, [](uv_timer_t* t) { static_cast<State*>(t->data)->late = true; },
          static_cast<std::uint64_t>(timeout_ms), 0);
    loop.run_until([this] { return readable || interrupted || late || resized; });
    uv_poll_stop(poll);
    uv_timer_stop(timer);
  }

  void suspend() {
    set_raw(false);
    write_out(screen.finish());
    ::kill(0, SIGTSTP);  // returns when the shell continues this process
    set_raw(true);
  }

  // Carries out the keys; nothing: the entry is not at its end yet.
  std::optional<Input> press(const std::vector<Key>& pressed, bool& painted) {
    for (std::size_t i = 0; i < pressed.size(); ++i) {
      const LineEditor::Outcome outcome = editor.press(pressed[i]);
      painted = false;
      if (outcome == LineEditor::Outcome::suspend) suspend();
      if (outcome == LineEditor::Outcome::clear_screen) {
        write_out(clear);
        screen.forget();
      }
      if (outcome != LineEditor::Outcome::entry && outcome != LineEditor::Outcome::end) continue;
      later.assign(pressed.begin() + static_cast<std::ptrdiff_t>(i) + 1, pressed.end());
      return outcome == LineEditor::Outcome::entry ? Input::entry : Input::end;
    }
    return std::nullopt;
  }

  Input edit() {
    bool painted = false;
    for (std::vector<Key> pressed = std::exchange(later, {});;) {
      if (const auto input = press(pressed, painted)) return *input;
      if (std::exchange(resized, false)) painted = false;
      if (!std::exchange(painted, true)) paint();
      wait(keys.waits_for_more() ? escape_wait_ms : -1);
      if (interrupted) return Input::interrupted;
      pressed.clear();
      if (readable) {
        char block[65536];
        const ssize_t n = ::read(0, block, sizeof block);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return Input::gone;
        if (n > 0) pressed = keys.read(std::string_view(block, static_cast<std::size_t>(n)));
      } else if (late) {
        pressed = keys.flush();
      }
    }
  }

  Input read_entry(const std::string& prompt, const std::string& continuation, std::string& entry) {
    editor.begin(prompt, continuation);
    if (!offered.empty()) editor.set(std::exchange(offered, ""));
    set_raw(true);
    uv_signal_start(
        window, [](uv_signal_t* s, int) { static_cast<State*>(s->data)->resized = true; }, SIGWINCH);
    reading = true;
    const Input input = edit();
    reading = false;
    uv_signal_stop(window);
    if (input == Input::entry) {
      entry = editor.text();
      const winsize size = size_of_terminal();  // without suggestion and hint
      Drawing last = editor.drawing(size.ws_col, size.ws_row, color);
      last.ghost.clear();
      last.below.clear();
      write_out(screen.show(picture_of(last), size.ws_row));
    }
    if (input == Input::interrupted) {
      write_out("^C");
      later.clear();
      keys = {};
    }
    write_out(screen.finish());
    set_raw(false);
    return input;
  }

  // One line as the terminal gives it.
  Input read_plain(const std::string& prompt, std::string& line) {
    write_out(prompt);
    line.clear();
    while (line.empty() || line.back() != '\n') {
      wait(-1);
      if (interrupted) {
        write_out("^C\n");
        return Input::interrupted;
      }
      if (!readable) continue;
      char c = 0;
      const ssize_t n = ::read(0, &c, 1);
      if (n <= 0) return n == 0 ? Input::end : Input::gone;
      line += c;
    }
    line.pop_back();
    return Input::entry;
  }

  std::vector<Key> later;  // keys that came behind the end of an entry
};

Editor::Editor(Loop& loop, const std::string& history_file, bool color, const LineEditor::Uses& uses) {
  use_character_widths();
  state_ = std::make_unique<State>(loop, history_file, color, uses);
}

Editor::~Editor() = default;

Editor::Input Editor::read(const std::string& prompt, const std::string& continuation, std::string& entry) {
  State& s = *state_;
  s.interrupted = false;
  if (s.moves) return s.read_entry(prompt, continuation, entry);
  entry.clear();
  for (bool first = true;; first = false) {
    std::string line;
    const Input input = s.read_plain(first ? prompt : continuation, line);
    if (input != Input::entry) return input;
    entry += first ? line : "\n" + line;
    if (!s.unfinished || !s.unfinished(entry)) return Input::entry;
  }
}

Editor::Input Editor::read_line(const std::string& question, std::string& line) {
  state_->interrupted = false;
  return state_->read_plain(question, line);
}

void Editor::offer(std::string text) { state_->offered = std::move(text); }

void Editor::add_history(const std::string& entry) { state_->history.add(entry); }

History& Editor::history() { return state_->history; }

void Editor::interrupt() { state_->interrupted = true; }

void Editor::hide() {
  if (state_->reading && state_->moves) write_out(state_->screen.hide());
}

void Editor::draw() {
  if (state_->reading && state_->moves) state_->paint();
}

void Editor::restore() { state_->set_raw(false); }

}  // namespace rille::cli
