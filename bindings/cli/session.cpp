#include "bindings/cli/session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "bindings/cli/event_text.hpp"
#include "bindings/cli/reaper.hpp"
#include "bindings/host/program.hpp"
#include "bindings/lua/open.hpp"
#include "runtime/compute/device/lane_busy.hpp"

namespace rille::cli {

void RunLog::open(const std::string& path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

RunLog::~RunLog() {
  if (fd_ >= 0) ::close(fd_);
}

void RunLog::write(std::string_view text) {
  if (fd_ >= 0 && ::write(fd_, text.data(), text.size()) < 0) ::close(std::exchange(fd_, -1));
}

namespace {

// Shows the event. What was tried again, or moved, is also noted in the log, among the output that it explains.
void show_event(App& app, RunLog& log, const Value& e) {
  const std::string note = event_text(e), what = e.text("event");
  if (note.empty()) return;
  if (!app.json) app.terminal.note(note);
  for (const char* again : {"retry", "call_restarted", "replacing", "preempting", "resized", "fiber_failed"})
    if (what == again) log.write(fmt::format("[rille: {}]\n", note));
}

host::HostOptions host_options(Session& s, const std::string& directory, host::Rules rules) {
  host::HostOptions o;
  o.rules = rules;
  o.jit = host::Jit::on_request;
  o.full_tracebacks = s.app.trace;
  o.grants = s.grants;
  o.memory_limit_bytes = host::default_memory_limit();
  o.script_directory = directory;
  o.on_interrupt = [&s] {
    if (s.signals) s.signals->poll();
  };  // the loop, which handles signals otherwise, does not run while Lua runs
  o.open = lua::openers();
  return o;
}

// Runs the child runs of the session's script: their output is shown like the script's own, and each has its own log
// file.
class Children final : public engine::ChildPrograms {
 public:
  explicit Children(Session& s) : s_(s) {}

  engine::RunHooks hooks(const std::string& run) override {
    engine::RunHooks h = session_hooks(s_);
    auto log = std::make_shared<RunLog>();
    std::string folder = s_.app.engine->home() + "/runs/" + run;
    std::error_code ignored;
    std::filesystem::create_directories(folder, ignored);
    log->open(folder + "/log");
    h.print = [&s = s_, log](std::string_view text) {
      s.app.terminal.script_text(text);
      log->write(text);
    };
    h.event = [&s = s_, log](const Value& e) { show_event(s.app, *log, e); };
    return h;
  }

  Result<std::unique_ptr<engine::Program>> load(engine::Run& child, const std::string& script) override {
    host::HostOptions o = host_options(s_, "", host::Rules::workflow);
    o.on_interrupt = host::interrupt_child(std::move(o.on_interrupt), *s_.run, child);
    return host::load_program(*s_.app.loop, std::move(o), s_.interrupter, child, script);
  }

 private:
  Session& s_;
};

}  // namespace

engine::RunHooks session_hooks(Session& s) {
  engine::RunHooks h;
  h.children = std::make_shared<Children>(s);
  h.print = [&s](std::string_view text) {
    s.app.terminal.script_text(text);
    s.log.write(text);
  };
  h.progress = [&s](const Value& p) { s.app.terminal.progress(p); };
  h.event = [&s](const Value& e) { show_event(s.app, s.log, e); };
  return h;
}

Result<> make_host(Session& s, const std::string& directory, host::Rules rules, std::vector<lua_CFunction> open) {
  host::HostOptions o = host_options(s, directory, rules);
  o.open.insert(o.open.end(), open.begin(), open.end());
  RILLE_TRY(s.host, host::LuaHost::create(*s.app.loop, std::move(o)));
  s.host->bind_run(*s.run);
  s.host->grant(s.grants);
  engine::RunLimits limits;
  RILLE_TRY(limits.spend_micros, host::settle_spend(*s.run, -1));  // of a run that a host program began
  s.run->limit(host::shared_limits(*s.host, std::move(limits)));
  s.interrupter.add(s.host.get());
  return {};
}

Exit drive(Session& s, FunctionRef main, const std::string& title, const std::function<Exit()>& then) {
  Interrupts handler(
      *s.app.loop, [](void* i) { static_cast<host::Interrupter*>(i)->arm(); }, &s.interrupter,
      [&s](int count) {
        if (s.result) {
          s.hurried = true;
        } else if (count == 1) {
          s.app.terminal.note("interrupted: cleaning up (Ctrl-C again to stop at once)");
          s.run->cancel(make_error(ErrorKind::cancelled, "interrupted by Ctrl-C"));
        } else {
          abandon(s);
        }
      },
      [&s](int signal) { suspend(s, signal); }, abandon_words(s));
  s.signals = &handler;
  if (!title.empty()) s.app.terminal.note(title);  // the handlers are active, so Ctrl-C now runs the cleanup
  s.app.loop->spawn([](Session& session, FunctionRef f) -> Task<void> {
    Value none;
    session.result.emplace(co_await session.run->execute(*session.host, f, none));
  }(s, main));
  std::optional<Reaper> reaper;
  if (s.run->mode() == engine::Mode::durable) reaper.emplace(s.app);
  s.app.loop->run_until([&] { return s.result.has_value(); });
  const bool cancelled =
      !*s.result && (s.result->error().kind == ErrorKind::cancelled || s.result->error().code == "run_deadline");
  const Exit code = then();
  if (reaper) reaper->at_exit([&s] { return s.hurried; });
  if (cancelled) leave_unfinished(s.app, code);
  return code;
}

void leave_unfinished(App& app, Exit code) {
  if (device::lanes_settle(std::chrono::seconds(1))) return;
  (void)app.engine->journal().flush();
  app.terminal.note("a computation that does not end is left where it stands");
  _exit(status_of(code));
}

std::vector<std::string> abandon_words(const Session& s) {
  return {s.app.self_exe, "release", s.run->id(), "--abandoned"};
}

[[noreturn]] void abandon(Session& s) {
  s.app.terminal.clear_progress();
  s.app.terminal.note("cancelled at once: releasing what the run holds");
  std::vector<std::string> words = abandon_words(s);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  become(pointers.data());
  s.app.terminal.note("it could not: end what is rented with `rille release " + s.run->id() + "`");
  _exit(status_of(Exit::cleanup_pending));
}

[[noreturn]] void suspend(Session& s, int signal) {
  s.app.terminal.clear_progress();
  if (s.run) {
    (void)s.app.engine->suspend(*s.run);
    if (s.app.json)
      s.app.terminal.out(
          Value().set("run", s.run->id()).set("state", "suspended").set("signal", signal).to_json_pretty() + "\n");
    s.app.terminal.note(fmt::format("suspended by signal {}; continue with: rille resume {}", signal, s.run->id()));
  }
  _exit(128 + signal);
}

}  // namespace rille::cli
