#include "bindings/cli/editor.hpp"

#include <histedit.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>

#include "bindings/cli/visible.hpp"
#include "runtime/core/base/places.hpp"

namespace rille::cli {

struct Editor::State {
  Loop& loop;
  EditLine* edit = nullptr;
  History* history = nullptr;
  std::string file, prompt;
  Complete complete;
  bool reading = false, interrupted = false;
  uv_poll_t* poll = nullptr;
  bool readable = false;

  explicit State(Loop& l) : loop(l) {}

  // Runs the loop until the terminal has a key to read. -1: the editor was interrupted.
  int wait() {
    readable = interrupted = false;
    uv_poll_start(poll, UV_READABLE, [](uv_poll_t* p, int, int) { static_cast<State*>(p->data)->readable = true; });
    loop.run_until([this] { return readable || interrupted; });
    uv_poll_stop(poll);
    return interrupted ? -1 : 0;
  }

  static State& of(EditLine* e) {
    void* p = nullptr;
    el_get(e, EL_CLIENTDATA, &p);
    return *static_cast<State*>(p);
  }

  // Reads one character: libedit wants wide characters, but the terminal sends UTF-8.
  static int get_character(EditLine* e, wchar_t* out) {
    State& s = of(e);
    unsigned char c = 0;
    if (s.wait() != 0) return -1;
    ssize_t n = ::read(0, &c, 1);
    if (n <= 0) return static_cast<int>(n);
    int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    std::uint32_t code = more == 3 ? c & 0x07 : more == 2 ? c & 0x0f : more == 1 ? c & 0x1f : c;
    for (; more > 0; --more) {
      if (::read(0, &c, 1) != 1) return -1;
      code = code << 6 | (c & 0x3f);
    }
    *out = static_cast<wchar_t>(code);
    return 1;
  }

  static char* get_prompt(EditLine* e) { return of(e).prompt.data(); }

  static std::size_t screen_width() {
    winsize size{};
    return ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }

  // Prints the names in columns like `ls`: down, then across.
  static std::string in_columns(const std::vector<std::string>& names, std::size_t width) {
    std::size_t longest = 0;
    for (const std::string& name : names) longest = std::max(longest, name.size());
    const std::size_t across = std::max<std::size_t>(1, (width + 1) / (longest + 2));
    const std::size_t down = (names.size() + across - 1) / across;
    std::string out;
    for (std::size_t row = 0; row < down; ++row) {
      std::string line;
      for (std::size_t at = row; at < names.size(); at += down)
        line += names[at] + std::string(at + down < names.size() ? longest + 2 - names[at].size() : 0, ' ');
      out += line + "\n";
    }
    return out;
  }

  static unsigned char on_tab(EditLine* e, int) {
    State& s = of(e);
    const LineInfo* info = el_line(e);
    std::string before(info->buffer, info->cursor);
    std::vector<std::string> found = s.complete ? s.complete(before) : std::vector<std::string>();
    if (found.empty()) return CC_REFRESH_BEEP;
    std::size_t start = before.find_last_of(" \t({[,=+-*/<>~;\"'#");
    std::size_t typed = before.size() - (start == std::string::npos ? 0 : start + 1);
    std::string common = found[0];
    for (const std::string& f : found) {
      std::size_t n = 0;
      while (n < common.size() && n < f.size() && common[n] == f[n]) ++n;
      common.resize(n);
    }
    if (common.size() > typed) {
      el_insertstr(e, common.substr(typed).c_str());
      return CC_REFRESH;
    }
    const std::string list = "\n" + visible(in_columns(found, screen_width()));
    if (::write(1, list.data(), list.size()) < 0) return CC_ERROR;
    return CC_REDISPLAY;
  }
};

namespace {

// Sets an environment variable while the object lives, unless the user has set it. No child process is started
// meanwhile.
class Lent {
 public:
  Lent(const char* name, const std::string& value) : name_(std::getenv(name) ? nullptr : name) {
    if (name_) setenv(name_, value.c_str(), 0);
  }
  ~Lent() {
    if (name_) unsetenv(name_);
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  const char* name_;
};

// Initializes libedit. libedit needs a locale for the width and case of characters, and terminfo; a bundle of Rille
// contains both for systems without them.
EditLine* init() {
  bool known = std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
  std::string bundle = bundle_folder();
  if (bundle.empty()) return el_init("rille", stdin, stdout, stderr);
  if (!known) {
    Lent locales("LOCPATH", bundle + "/share/rille/locale");
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
  Lent terminals("TERMINFO_DIRS", "/etc/terminfo:/lib/terminfo:/usr/share/terminfo:/usr/lib/terminfo:" + bundle +
                                      "/share/rille/terminfo");
  return el_init("rille", stdin, stdout, stderr);
}

}  // namespace

Editor::Editor(Loop& loop, const std::string& history_file) : state_(std::make_unique<State>(loop)) {
  State& s = *state_;
  s.file = history_file;
  s.poll = new uv_poll_t;
  uv_poll_init(loop.uv(), s.poll, 0);
  s.poll->data = &s;
  uv_unref(reinterpret_cast<uv_handle_t*>(s.poll));
  s.edit = init();
  el_set(s.edit, EL_CLIENTDATA, &s);
  el_set(s.edit, EL_EDITOR, "emacs");
  el_set(s.edit, EL_SIGNAL, 0);
  el_set(s.edit, EL_PROMPT, &State::get_prompt);
  el_set(s.edit, EL_GETCFN, &State::get_character);
  el_set(s.edit, EL_ADDFN, "rille-complete", "complete a name", &State::on_tab);
  el_set(s.edit, EL_BIND, "^I", "rille-complete", nullptr);
  el_set(s.edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  s.history = history_init();
  HistEvent event;
  history(s.history, &event, H_SETSIZE, 5000);
  history(s.history, &event, H_SETUNIQUE, 1);
  history(s.history, &event, H_LOAD, s.file.c_str());
  el_set(s.edit, EL_HIST, history, s.history);
}

Editor::~Editor() {
  HistEvent event;
  history(state_->history, &event, H_SAVE, state_->file.c_str());
  history_end(state_->history);
  el_end(state_->edit);
  uv_close(reinterpret_cast<uv_handle_t*>(state_->poll),
           [](uv_handle_t* h) { delete reinterpret_cast<uv_poll_t*>(h); });
}

Editor::Input Editor::read(const std::string& prompt, std::string& line) {
  State& s = *state_;
  s.prompt = prompt;
  s.reading = true;
  s.interrupted = false;
  int count = 0;
  errno = 0;
  const char* text = el_gets(s.edit, &count);
  s.reading = false;
  if (s.interrupted) {
    el_reset(s.edit);
    if (::write(1, "^C\n", 3) < 0) return Input::end;
    return Input::interrupted;
  }
  if (!text || count <= 0) return Input::end;
  line.assign(text, static_cast<std::size_t>(count));
  if (!line.empty() && line.back() == '\n') line.pop_back();
  return Input::line;
}

void Editor::add_history(const std::string& entry) {
  HistEvent event;
  std::string flat = entry;
  std::replace(flat.begin(), flat.end(), '\n', ' ');
  history(state_->history, &event, H_ENTER, flat.c_str());
}

void Editor::set_complete(Complete complete) { state_->complete = std::move(complete); }

void Editor::interrupt() { state_->interrupted = true; }

void Editor::hide() {
  if (state_->reading && ::write(1, "\r\x1b[K", 4) < 0) return;
}

void Editor::draw() {
  if (state_->reading) el_set(state_->edit, EL_REFRESH);
}

}  // namespace rille::cli
