// The REPL: one run with one scope. Entries run in the session's main fiber, so a machine rented by an entry lives
// until it is released or the session ends; fibers spawned by an entry continue while the user types the next line.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "bindings/cli/command.hpp"
#include "bindings/cli/editor.hpp"
#include "bindings/cli/runs.hpp"
#include "bindings/cli/session.hpp"
#include "bindings/host/await.hpp"
#include "bindings/host/bind.hpp"
#include "bindings/host/keys.hpp"
#include "bindings/host/object.hpp"
#include "bindings/host/open.hpp"
#include "bindings/host/stdlib_table.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::cli {

namespace {

using namespace rille::host;

struct Entry {
  std::string source;
  bool silent = false;
};

struct Repl : Session {
  explicit Repl(App& a) : Session(a) {}
  std::optional<Future<Result<std::optional<Entry>>>> next;  // the main fiber waits for this future, the next entry
  bool idle = false;                                         // whether the main fiber is waiting for an entry
  engine::ScopeId scope = 0;                                 // scope of the running entry; 0: no entry is running
  int interrupts = 0;                                        // how often Ctrl-C was pressed during the entry
  bool interrupted = false;  // Ctrl-C has interrupted at least one entry of this session
  int env_keep = 0;
};

char key_repl;  // key in the Lua registry of the state's Repl object

Repl& repl_of(lua_State* L) {
  get_registry(L, &key_repl);
  auto* r = static_cast<Repl*>(lua_touserdata(L, -1));
  lua_pop(L, 1);
  return *r;
}

Async<std::optional<Entry>> next_entry(Repl& r) {
  Future<Result<std::optional<Entry>>> future(*r.app.loop);
  r.next = future;
  r.idle = true;
  co_return co_await future;
}

int repl_read(lua_State* L) {
  return await(L, next_entry(repl_of(L)), [](lua_State* l, std::optional<Entry> e) {
    if (!e) return 0;
    push(l, e->source);
    push(l, e->silent);
    return 2;
  });
}

// Copies the entry's local variables at its end into the session's variables.
int repl_keep(lua_State* L) {
  lua_Debug ar;
  if (!lua_getstack(L, 1, &ar) || !lua_getinfo(L, "f", &ar)) return 0;
  lua_getfenv(L, -1);
  int env = lua_gettop(L);
  for (int i = 1; const char* name = lua_getlocal(L, &ar, i); ++i) {
    if (name[0] == '(') {
      lua_pop(L, 1);
      continue;
    }
    lua_pushstring(L, name);
    lua_insert(L, -2);
    lua_rawset(L, env);
  }
  return 0;
}

// Compiles an entry: an expression returns its values; statements keep their local variables for the next entries.
Result<int> repl_compile(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  std::string source(check_text(L, 1, "entry"));
  if (host.compile(L, "return " + source, "=prompt", false)) return 1;
  if (host.compile(L, source + "\n__rille_keep()", "=prompt", false)) return 1;
  Result<> plain = host.compile(L, source, "=prompt", false);
  if (plain) return 1;
  lua_pushnil(L);
  push_error(L, plain.error());
  return 2;
}

int repl_enter(lua_State* L) {
  Repl& r = repl_of(L);
  r.scope = r.run->entry_enter(1);
  r.interrupts = 0;
  push(L, static_cast<std::int64_t>(r.scope));
  return 1;
}

int repl_leave(lua_State* L) {
  Repl& r = repl_of(L);
  r.run->scope_leave(1, static_cast<engine::ScopeId>(check_integer(L, 1, "scope")));
  r.scope = 0;
  r.host->left_scope();
  return 0;
}

int repl_report(lua_State* L) {
  Repl& r = repl_of(L);
  r.app.terminal.error(caught_error(L, 1), r.app.trace);
  return 0;
}

int repl_done(lua_State*) { return 0; }

// Returns { { name =, source =, file = }, .. }: the annotated Lua modules that help() reads.
int repl_modules(lua_State* L) {
  lua_newtable(L);
  int i = 0;
  for (const StdlibModule& m : stdlib_modules()) {
    lua_newtable(L);
    for (const char* key : {"name", "file"}) {
      push(L, m.name);
      lua_setfield(L, -2, key);
    }
    push(L, m.source);
    lua_setfield(L, -2, "source");
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

// Returns an object's class, such as "Instance"; for other values, the Lua type.
int repl_class(lua_State* L) {
  push(L, type_name(L, 1));
  return 1;
}

// Sets a variable that all later entries of the session see.
int repl_set(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  if (!host.compile(L, "", "=prompt", false)) return 0;
  lua_getfenv(L, -1);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_rawset(L, -3);
  return 0;
}

int open_repl(lua_State* L) {
  lua_settop(L, 1);
  push_rille_core(L);
  lua_getfield(L, -1, "trace");
  int trace = lua_gettop(L);
  lua_newtable(L);
  set_functions(L, {{"compile", bind<repl_compile>},
                    {"enter", bind<repl_enter>},
                    {"leave", bind<repl_leave>},
                    {"report", bind<repl_report>},
                    {"modules", bind<repl_modules>},
                    {"class", bind<repl_class>},
                    {"done", bind<repl_done>},
                    {"set", bind<repl_set>}});
  set_async(L, "read", bind<repl_read>);
  lua_pushvalue(L, trace);
  lua_setfield(L, -2, "trace");
  set_global(L, "__rille_prompt");
  lua_pushcfunction(L, bind<repl_keep>);
  set_global(L, "__rille_keep");
  get_registry(L, &key_rille);
  set_global(L, "rille");
  return 0;
}

// Whether the source is an incomplete entry: the parser expected more text at the source's end.
bool unfinished(const std::string& source) {
  std::unique_ptr<lua_State, void (*)(lua_State*)> L(luaL_newstate(), lua_close);
  if (!L) return false;
  auto ends_early = [&](const std::string& text) {
    if (luaL_loadbuffer(L.get(), text.data(), text.size(), "=prompt") == 0) return false;
    std::string message = lua_tostring(L.get(), -1);
    return message.ends_with("near '<eof>'");
  };
  std::string expression = "return " + source + "\n";
  if (luaL_loadbuffer(L.get(), expression.data(), expression.size(), "=prompt") == 0) return false;
  return ends_early(source + "\n") || ends_early(expression);
}

std::string strip(std::string s) {
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\n')) s.pop_back();
  std::size_t start = s.find_first_not_of(" \t\n");
  return start == std::string::npos ? "" : s.substr(start);
}

// Replaces the value on top of the stack by its field `name`, or nil. Runs no code except the loading of Rille's own
// modules.
void step_into(lua_State* L, const std::string& path, const std::string& name) {
  luaL_checkstack(L, 8, "completion");
  if (path == "rille.") {  // modules are loaded when their field is read
    lua_getfield(L, -1, name.c_str());
    return;
  }
  for (int level = 0; level < 4 && lua_istable(L, -1); ++level) {
    lua_pushstring(L, name.c_str());
    lua_rawget(L, -2);
    if (!lua_isnil(L, -1)) return;
    lua_pop(L, 1);
    if (!luaL_getmetafield(L, -1, "__index")) break;
  }
  lua_pushnil(L);
}

// Returns completions: fields of the value before the last dot or colon or, without one, the session's variables.
std::vector<std::string> complete(Repl& r, const std::string& before) {
  std::size_t start = before.find_last_of(" \t({[,=+-*/<>~;\"'#");
  std::string word = start == std::string::npos ? before : before.substr(start + 1);
  std::vector<std::string> found;
  lua_State* L = r.host->lua();
  StackGuard guard(L);
  (void)protect(L, [&](lua_State* l) {
    if (!r.host->compile(l, "", "=prompt", false)) return;
    lua_getfenv(l, -1);
    std::string path, rest = word;
    for (std::size_t at; (at = rest.find_first_of(".:")) != std::string::npos; rest = rest.substr(at + 1)) {
      path += rest.substr(0, at + 1);
      step_into(l, path.substr(0, path.size() - at - 1), rest.substr(0, at));
    }
    auto add = [&](const std::string& name) {
      if (name.starts_with(rest) && !name.starts_with("__") && (name[0] != '_' || !rest.empty()))
        found.push_back(path + name);
    };
    if (path == "rille.")
      for (const StdlibModule& m : stdlib_modules())
        if (std::string name(m.name); name.starts_with("rille.")) add(name.substr(6));
    if (!lua_istable(l, -1)) {
      for (const std::string& name : object_names(l, -1)) add(name);
      if (!luaL_getmetafield(l, -1, "__index")) return;
    }
    for (int level = 0; level < 3 && lua_istable(l, -1); ++level) {
      int table = lua_gettop(l);
      for (lua_pushnil(l); lua_next(l, table); lua_pop(l, 1))
        if (lua_type(l, -2) == LUA_TSTRING) add(lua_tostring(l, -2));
      if (!luaL_getmetafield(l, table, "__index")) break;
    }
  });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.size() > 60) found.resize(60);
  return found;
}

// Warns about live leases before the session ends; true: the session may end.
bool may_leave(Repl& r, Editor* editor) {
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
  if (!live || !editor) return true;
  r.app.terminal.out(fmt::format("{} {} still rented, at {} per hour. Release and quit? [y/N] ", live,
                                 live == 1 ? "box is" : "boxes are",
                                 lease::to_string(hourly) + (unknown ? " + ?" : "")));
  std::string answer;
  Editor::Input input = editor->read("", answer);
  if (input == Editor::Input::end) r.app.terminal.out("\n");
  return input == Editor::Input::line && !answer.empty() && (answer[0] == 'y' || answer[0] == 'Y');
}

// Lists the machines that a resumed session still rents: the session's variables are lost, its machines are not.
void show_rented(Repl& r) {
  auto leases = r.app.engine->leases().of_run(r.run->id());
  if (!leases) return;
  for (const auto& l : *leases)
    if (l.billable() && !lease::is_volume(l))
      r.app.terminal.out(fmt::format("still rented: {}, at {} per hour; get it back with box = rille.rent(\"{}\")\n",
                                     l.name, l.price().shown(), l.name));
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

void submit(Repl& r, std::optional<Entry> entry) {
  r.idle = false;
  auto next = std::exchange(r.next, std::nullopt);
  bool last = !entry;
  next->set(Result<std::optional<Entry>>(std::move(entry)));
  r.app.loop->run_until([&] { return (r.idle && !last) || r.result.has_value(); });
  r.app.terminal.clear_progress();
}

// Whether to discard the unfinished entry: after two empty lines, because a single one may be part of pasted text.
bool gives_up(const std::string& pending) { return pending.ends_with("\n\n"); }

void converse(Repl& r, Editor& editor) {
  std::string pending;
  r.app.loop->run_until([&] { return r.idle || r.result.has_value(); });
  while (!r.result) {
    std::string line;
    Editor::Input input = editor.read(pending.empty() ? "rille> " : "    .. ", line);
    if (input == Editor::Input::interrupted) {
      pending.clear();
      continue;
    }
    if (input == Editor::Input::end) {
      r.app.terminal.out("\n");
      if (!may_leave(r, &editor)) continue;
      submit(r, std::nullopt);
      return;
    }
    pending += pending.empty() ? line : "\n" + line;
    std::string source = strip(pending);
    if (source.empty()) {
      pending.clear();
      continue;
    }
    if (source[0] == '=') source = strip(source.substr(1));
    if (source[0] == '?') source = fmt::format("help [=[{}]=];", strip(source.substr(1)));
    if (!gives_up(pending) && unfinished(source)) continue;
    editor.add_history(pending);
    pending.clear();
    if (source == ":quit" || source == "exit" || source == "quit") {
      if (!may_leave(r, &editor)) continue;
      submit(r, std::nullopt);
      return;
    }
    Entry entry{source, source.back() == ';'};
    while (!entry.source.empty() && entry.source.back() == ';') entry.source.pop_back();
    submit(r, std::move(entry));
  }
}

// Reads and runs entries until the session ends; returns the exit code.
Exit talk(Repl& r, FunctionRef main, bool resumed) {
  App& app = r.app;
  Editor editor(*app.loop, app.home + "/history");
  editor.set_complete([&r](const std::string& before) { return complete(r, before); });
  app.terminal.set_prompt([&] { editor.hide(); }, [&] { editor.draw(); });
  Interrupts handler(
      *app.loop, [](void* i) { static_cast<Interrupter*>(i)->arm(); }, &r.interrupter,
      [&](int) {
        if (r.idle) editor.interrupt();
        else interrupt_entry(r);
      },
      [&](int signal) { suspend(r, signal); }, {},
      fmt::format("\nstopped inside a call that cannot be interrupted; {}\n", how_to_go_on(r)));
  r.signals = &handler;
  app.terminal.out("Rille " RILLE_VERSION "  (Ctrl-D leaves, ?name for help)\n");
  if (resumed) show_rented(r);
  app.loop->spawn([](Repl& session, FunctionRef f) -> Task<void> {
    Value none;
    session.result.emplace(co_await session.run->execute(*session.host, f, none));
  }(r, main));
  converse(r, editor);
  app.loop->run_until([&] { return r.result.has_value(); });
  app.terminal.set_prompt(nullptr, nullptr);
  r.signals = nullptr;
  const Result<Value>& result = *r.result;
  return result ? Exit::ok : fail(app, result.error());
}

struct ReplCommand final : Command {
  Exit run(App& app) override { return open_prompt(app, ""); }
};

const Registered<ReplCommand> repl_row({Group::run, "repl", "the prompt (also: rille alone)", Opens::nothing});

}  // namespace

Exit open_prompt(App& app, const std::string& resume) {
  if (!isatty(0)) {  // standard input is a pipe or file: all of it is one script
    std::string code;
    char block[65536];
    for (ssize_t n; (n = ::read(0, block, sizeof block)) > 0;) code.append(block, static_cast<std::size_t>(n));
    RunArguments arguments;
    arguments.code = code;
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
  lua_pushlightuserdata(r.host->lua(), &r);
  set_registry(r.host->lua(), &key_repl);
  Result<FunctionRef> main = r.host->load("=repl", "return require('rille.repl').main(__rille_prompt)");
  if (!main) return fail(app, main.error());

  const Exit code = talk(r, *main, !resume.empty());
  if (r.interrupted) leave_unfinished(app, code);
  return code;
}

}  // namespace rille::cli
