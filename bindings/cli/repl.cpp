// The REPL: one run with one scope. Entries run in the session's main fiber, so a machine rented by an entry lives
// until it is released or the session ends; fibers spawned by an entry continue while the user types the next line.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "bindings/cli/command.hpp"
#include "bindings/cli/prompt/session.hpp"
#include "bindings/cli/runs.hpp"
#include "bindings/host/keys.hpp"
#include "bindings/lua/compute/contained.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::cli {

namespace {

std::string strip(const std::string& s) {
  const std::size_t start = s.find_first_not_of(" \t\n");
  return start == std::string::npos ? "" : s.substr(start, s.find_last_not_of(" \t\n") + 1 - start);
}

// Ends the process; the run can be resumed, and what it has rented stays.
[[noreturn]] void leave_suspended(Repl& r) {
  (void)r.app.engine->suspend(*r.run);
  r.app.terminal.note("suspended; continue with: rille resume " + r.run->id());
  _exit(status_of(Exit::ok));
}

enum class Leave { no, release, keep };

// Asks what becomes of live leases before the session ends.
Leave may_leave(Repl& r, Editor* editor) {
  auto leases = r.app.engine->leases().of_run(r.run->id());
  lease::Amounts hourly;
  bool unknown = false;
  int live = 0;
  if (leases)
    for (const auto& l : *leases)
      if (l.billable() && !lease::is_kept(l)) {
        const lease::Price price = l.price();
        ++live;
        if (price.micros < 0) unknown = true;
        else hourly[price.currency] += price.micros;
      }
  if (!live || !editor) return Leave::release;
  const std::string question =
      fmt::format("{} {} still rented, at {} per hour (s keeps {} for `rille resume`). Release and quit? [y/N] ", live,
                  live == 1 ? "box is" : "boxes are", lease::to_string(hourly) + (unknown ? " + ?" : ""),
                  live == 1 ? "it" : "them");
  std::string answer;
  const Editor::Input input = editor->read_line(question, answer);
  if (input == Editor::Input::end) r.app.terminal.out("\n");
  if (input != Editor::Input::entry || answer.empty()) return Leave::no;
  if (answer[0] == 's' || answer[0] == 'S') return Leave::keep;
  return answer[0] == 'y' || answer[0] == 'Y' ? Leave::release : Leave::no;
}

std::string how_to_go_on(const Repl& r) {
  return fmt::format("what the session has rented stays: rille resume {0} gets it back, rille release {0} ends it",
                     r.run->id());
}

// Ctrl-C while an entry runs cancels the entry; if the entry does not stop, a third Ctrl-C can leave the session.
void interrupt_entry(Repl& r) {
  r.interrupted = true;
  if (++r.interrupts == 2) r.app.terminal.note("still ending that (Ctrl-C again to leave the session)");
  if (r.interrupts > 2) {
    r.app.terminal.note(how_to_go_on(r));
    suspend(r, SIGINT);
  }
  if (r.scope) r.run->cancel_scope(r.scope, make_error(ErrorKind::cancelled, "interrupted by Ctrl-C"));
}

void submit(Repl& r, std::optional<std::string> entry) {
  r.idle = false;
  r.interrupts = 0;  // of this entry
  auto next = std::exchange(r.next, std::nullopt);
  const bool last = !entry;
  next->set(Result<std::optional<std::string>>(std::move(entry)));
  r.app.loop->run_until([&] { return (r.idle && !last) || r.result.has_value(); });
  r.app.terminal.clear_progress();
}

// Whether Enter adds a line. Two empty lines end an entry that is not complete; a single one may be part of a text.
bool goes_on(const std::string& text) {
  const std::size_t last = text.find_last_not_of(" \n");
  const bool given_up =
      last != std::string::npos && std::count(text.begin() + static_cast<std::ptrdiff_t>(last), text.end(), '\n') >= 2;
  const std::string source = strip(text);
  if (given_up || source.empty()) return false;
  if (source[0] == '?' || source[0] == '!' || (source[0] == ':' && !source.starts_with("::"))) return false;
  return is_unfinished(source[0] == '=' ? source.substr(1) : source);
}

bool asks_to_leave(const std::string& source) {
  const std::string word = source.ends_with("()") ? source.substr(0, source.size() - 2) : source;
  return source == ":quit" || word == "exit" || word == "quit";
}

constexpr std::int64_t hangup_wait_ms = 12'000;  // for the running entry, and for tensors to be computed

// SIGTERM, SIGHUP or a closed terminal: the session keeps its variables, as by :suspend, once the running entry ended.
void hang_up(Repl& r, Editor& editor, int signal) {
  editor.restore();
  if (r.hangup) suspend(r, signal);  // the second time at once
  r.hangup = signal;
  r.last_wait.emplace(*r.app.loop, hangup_wait_ms, [&r, signal] { suspend(r, signal); });
  if (r.idle) editor.interrupt();
  else if (r.scope) r.run->cancel_scope(r.scope, make_error(ErrorKind::cancelled, "the session is suspended"));
}

[[noreturn]] void leave_hung_up(Repl& r) {
  submit(r, ":suspend");
  suspend(r, r.hangup);
}

// `first`: an entry to run before the user's; "": none.
void converse(Repl& r, Editor& editor, const std::string& first) {
  r.app.loop->run_until([&] { return r.idle || r.result.has_value(); });
  if (!first.empty() && !r.result) submit(r, first);
  while (!r.result) {
    if (r.hangup) leave_hung_up(r);
    const std::string prompt = fmt::format("{} rille> ", r.number);
    std::string text;
    const Editor::Input input = editor.read(prompt, std::string(prompt.size() - 3, ' ') + ".. ", text);
    if (input == Editor::Input::gone && !r.hangup) hang_up(r, editor, SIGHUP);
    if (r.hangup) continue;
    if (input == Editor::Input::interrupted) continue;
    const std::string source = strip(text);
    Leave leave = Leave::no;
    if (input == Editor::Input::end || asks_to_leave(source)) {
      leave = may_leave(r, &editor);
      if (leave == Leave::release) return submit(r, std::nullopt);
    }
    if (leave == Leave::keep) {
      submit(r, ":suspend");
    } else if (input == Editor::Input::entry && !source.empty() && !asks_to_leave(source)) {
      editor.add_history(source);
      r.entries.push_back(source);
      submit(r, source);
    }
    if (r.suspends) leave_suspended(r);
  }
}

// Reads and runs entries until the session ends; returns the exit code.
Exit talk(Repl& r, FunctionRef main, const std::string& first) {
  App& app = r.app;
  Editor editor(*app.loop, app.home + "/history", app.terminal.color(),
                {goes_on, [&r](const std::string& before) { return complete_entry(r, before); },
                 [&r](const std::string& before) { return hint_for(r, before); }});
  r.editor = &editor;
  app.terminal.set_prompt([&] { editor.hide(); }, [&] { editor.draw(); });
  Interrupts handler(
      *app.loop, [](void* i) { static_cast<host::Interrupter*>(i)->arm(); }, &r.interrupter,
      [&](int) {
        if (r.idle) editor.interrupt();
        else interrupt_entry(r);
      },
      [&](int signal) { hang_up(r, editor, signal); }, {},
      fmt::format("\nstopped inside a call that cannot be interrupted; {}\n", how_to_go_on(r)));
  r.signals = &handler;
  app.terminal.out("Rille " RILLE_VERSION "  (Ctrl-D leaves, ?name for help, :help for commands)\n");
  app.loop->spawn([](Repl& session, FunctionRef f) -> Task<void> {
    Value none;
    session.result.emplace(co_await session.run->execute(*session.host, f, none));
  }(r, main));
  converse(r, editor, first);
  app.loop->run_until([&] { return r.result.has_value(); });
  app.terminal.set_prompt(nullptr, nullptr);
  r.editor = nullptr;
  r.signals = nullptr;
  const Result<Value>& result = *r.result;
  return result ? Exit::ok : fail(app, result.error());
}

struct ReplCommand final : Command {
  Exit run(App& app) override { return open_prompt(app, ""); }
};

const Registered<ReplCommand> repl_row({Group::run, "repl", "the prompt (also: rille alone)", Opens::nothing});

}  // namespace

Exit open_prompt(App& app, const std::string& resume, const std::string& first) {
  if (!isatty(0)) {  // standard input is a pipe or file: all of it is one script
    std::string code;
    char block[65536];
    for (ssize_t n; (n = ::read(0, block, sizeof block)) > 0;) code.append(block, static_cast<std::size_t>(n));
    RunArguments arguments;
    arguments.code = first.empty() ? code : first + "\n" + code;
    arguments.resume = resume;  // the script continues the session `resume` and ends it
    return run_to_end(app, arguments);
  }
  if (Result<> r = open_engine(app); !r) return fail(app, r.error());
  Repl r(app);
  engine::RunSpec spec;
  spec.script = "repl";
  spec.mode = engine::Mode::session;
  auto run = resume.empty() ? run_blocking(*app.loop, app.engine->start(spec, session_hooks(r)))
                            : run_blocking(*app.loop, app.engine->resume(resume, session_hooks(r)));
  if (!run) return fail(app, run.error());
  r.run = std::move(*run);
  r.log.open(r.run->home() + "/log");
  std::vector<lua_CFunction> open(1, open_repl);
  if (Result<> made = make_host(r, app.folder(), host::Rules::open, open); !made) return fail(app, made.error());
  set_repl(r.host->lua(), r);
  lua::contain_kernels(r.host->lua());
  Result<FunctionRef> main = r.host->load("=repl", "return require('rille.repl').main(__rille_prompt)");
  if (!main) return fail(app, main.error());

  const Exit code = talk(r, *main, first);
  if (r.interrupted) leave_unfinished(app, code);
  return code;
}

}  // namespace rille::cli
