// `rille FILE`, `rille run`, `rille resume`, `rille -e`: start or resume one run and drive it to its end.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "bindings/cli/command.hpp"
#include "bindings/cli/grants.hpp"
#include "bindings/cli/runs.hpp"
#include "bindings/cli/session.hpp"
#include "bindings/host/lua.hpp"
#include "bindings/host/open.hpp"
#include "bindings/host/program.hpp"
#include "bindings/lua/open.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/engine/remove.hpp"
#include "runtime/workflow/engine/working_folder.hpp"

namespace rille::cli {

namespace {

// The run executes the pinned version of its script; prints a note if the file was edited since.
void warn_if_edited(Session& s, const std::string& script) {
  std::ifstream file(script, std::ios::binary);
  if (!file) return;
  std::stringstream text;
  text << file.rdbuf();
  // LuaHost::load_file pins the script under this name
  std::string name = std::filesystem::path(script).filename().string();
  Result<std::string> pinned = s.run->pinned(name, [&]() -> Result<std::string> { return text.str(); });
  if (pinned && *pinned != text.str())
    s.app.terminal.note(
        fmt::format("{} has changed since this run began; the version that it began with goes on", script));
}

// Finds a script in the same folder with a similar name; "": there is none.
std::string nearest_file(const std::string& word) {
  const std::filesystem::path path(word);
  std::vector<std::string> names;
  std::error_code ec;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec))
    if (entry.path().extension() == ".lua") names.push_back(entry.path().filename().string());
  const std::string near = did_you_mean(path.filename().string(), names);
  return near.empty() ? "" : (path.parent_path() / near).string();
}

// The command that does what users of other tools ask for by this word; "": none.
std::string command_elsewhere(std::string_view word) {
  static constexpr std::pair<std::string_view, const char*> others[] = {{"version", "--version"},
                                                                        {"ssh", "attach"},
                                                                        {"status", "ps"},
                                                                        {"queue", "ps"},
                                                                        {"ls", "ps"},
                                                                        {"list", "ps"},
                                                                        {"launch", "run"},
                                                                        {"submit", "run"},
                                                                        {"start", "run"},
                                                                        {"down", "release"},
                                                                        {"destroy", "release"},
                                                                        {"stop", "cancel"},
                                                                        {"kill", "cancel"},
                                                                        {"gpus", "offers --list"},
                                                                        {"show-gpus", "offers --list"},
                                                                        {"prices", "offers --list"},
                                                                        {"price", "estimate"},
                                                                        {"new", "init"}};
  for (const auto& [theirs, ours] : others)
    if (word == theirs) return ours;
  return "";
}

// Makes the error for a word that is neither a command nor a file.
Error no_script(const std::string& word) {
  std::error_code ec;
  if (std::filesystem::is_directory(word, ec))
    return make_error(ErrorKind::invalid, fmt::format("'{}' is a folder, not a script", word),
                      "name the file: rille FILE.lua");
  if (const std::string file = nearest_file(word); !file.empty())
    return make_error(ErrorKind::invalid, fmt::format("there is no script '{}'", word),
                      fmt::format("did you mean {}?", file));
  std::vector<std::string> names;
  for (const CommandRow* row : commands_of("")) names.emplace_back(row->name);
  std::string near = command_elsewhere(word);
  if (near.empty() && word.find('/') == std::string::npos) near = did_you_mean(word, names);
  return make_error(
      ErrorKind::invalid, fmt::format("there is no script '{}'", word),
      near.empty() ? "rille --help lists the commands" : fmt::format("did you mean the command `rille {}`?", near));
}

// Whether rille.args refused the arguments before the run recorded anything; the caller then deletes the run.
bool is_refused(const Session& s) {
  if (*s.result || s.result->error().code != "script_arguments") return false;
  auto entries = s.app.engine->entries(s.run->id());
  auto leases = s.app.engine->leases().of_run(s.run->id());
  return entries && entries->empty() && leases && leases->empty();
}

Exit refuse(Session& s) {
  App& app = s.app;
  Result<> gone = run_blocking(*app.loop, engine::remove_run(*app.engine, s.run->id()));
  if (app.json) app.terminal.out(Value().set("error", error_to_value(s.result->error())).to_json_pretty() + "\n");
  else app.terminal.error(s.result->error(), app.trace);
  if (gone) app.terminal.note("nothing was begun, and no run is kept");
  return Exit::usage;
}

// Warns if the script never read its arguments: without rille.args a misspelt option would be ignored silently.
void warn_if_unread(Session& s, const std::vector<std::string>& words) {
  if (words.empty()) return;
  lua_State* L = s.host->lua();
  host::StackGuard guard(L);
  host::push_rille_core(L);
  lua_getfield(L, -1, "arguments_read");
  if (!lua_toboolean(L, -1))
    s.app.terminal.note(fmt::format("nothing in the script has read its options ({}): see rille.args", words.front()));
}

Exit finish(Session& s) {
  App& app = s.app;
  app.terminal.clear_progress();
  auto leases = app.engine->leases().of_run(s.run->id());
  bool pending = false;
  if (leases)
    for (const auto& l : *leases) pending = pending || (l.billable() && !l.detached);
  const Result<Value>& r = *s.result;
  if (app.json) {
    Value v;
    v.set("run", s.run->id());
    if (r) v.set("result", *r);
    else v.set("error", error_to_value(r.error()));
    app.terminal.out(v.to_json_pretty() + "\n");
  } else {
    if (leases && !leases->empty()) app.terminal.out("\n" + cost_table(*leases, app.loop->clock().wall_us()));
    if (!r) app.terminal.error(r.error(), app.trace);
  }
  if (pending) {
    app.terminal.note("something is still rented: see `rille leases`, end it with `rille release` or `rille gc`");
    return Exit::cleanup_pending;
  }
  return r ? Exit::ok : exit_of(r.error());
}

// A run that the user cancelled and that ended as cancelled is a success for the exit code.
Exit finish_cancelled(Session& s) {
  const Result<Value>& r = *s.result;
  if (r || r.error().kind != ErrorKind::cancelled) return finish(s);
  const Error why = r.error();
  s.result.emplace(Value());
  const Exit code = finish(s);
  s.app.terminal.note(fmt::format("run {}: {}", s.run->id(), why.message));
  return code;
}

// The command's arguments after the checks that need no engine.
struct Checked {
  std::string script;                                // absolute path; "" for -e and for a resumed run
  std::string edited;                                // path given with --with; "": the script is not replaced
  Value input;                                       // arguments of a new run
  host::Grants grants = host::Grants::everything();  // of a new run
  std::int64_t deadline_ms = 0;
};

Result<std::string> script_at(const RunArguments& arguments) {
  std::error_code ec;
  std::string script = std::filesystem::absolute(arguments.file, ec).lexically_normal().string();
  if (!std::filesystem::is_regular_file(script, ec)) return no_script(arguments.file);
  if (access(script.c_str(), R_OK) != 0) return errno_error("open", arguments.file, errno);
  return script;
}

Result<std::int64_t> read_deadline(const std::string& text) {
  Result<std::int64_t> ms = parse_duration_ms(text);
  if (ms && *ms <= 0) ms = make_error(ErrorKind::invalid, fmt::format("the deadline '{}' is not above zero", text));
  if (ms) return ms;
  Error e = std::move(ms).error();
  e.message = "--deadline: " + e.message;
  return e;
}

Result<Checked> check(const RunArguments& arguments) {
  Checked out;
  if (!arguments.with.empty()) {
    std::error_code ec;
    out.edited = std::filesystem::absolute(arguments.with, ec).lexically_normal().string();
    if (!std::filesystem::is_regular_file(out.edited, ec))
      return make_error(ErrorKind::invalid, fmt::format("there is no script '{}'", arguments.with));
  }
  if (arguments.resume.empty() && !arguments.code) {
    RILLE_TRY(out.script, script_at(arguments));
    RILLE_TRY(out.input, parse_script_arguments(arguments.script_arguments));
    RILLE_TRY(out.grants, grants_of(out.script, arguments.grants));
  }
  if (!arguments.deadline.empty()) { RILLE_TRY(out.deadline_ms, read_deadline(arguments.deadline)); }
  return out;
}

Result<> start(Session& s, const RunArguments& arguments, const Checked& checked) {
  engine::RunSpec spec;
  spec.script = arguments.code ? arguments.called : checked.script;
  spec.mode = arguments.code ? engine::Mode::session : engine::Mode::durable;
  spec.args = arguments.code ? arguments.input : checked.input;
  spec.tag = arguments.tag;
  spec.deadline_ms = checked.deadline_ms;
  RILLE_TRY(s.run, run_blocking(*s.app.loop, s.app.engine->start(std::move(spec), session_hooks(s))));
  return {};
}

bool goes_back(const RunArguments& arguments) { return !arguments.fork_from.empty() || arguments.retry_failed; }

// Resumes the run of `row`, or a fork of that run.
Result<> go_on(Session& s, const RunArguments& arguments, const engine::RunRow& row, Checked& checked) {
  engine::Engine& engine = *s.app.engine;
  std::string id = row.id;
  if (goes_back(arguments)) { RILLE_TRY(id, go_back(s.app, arguments)); }
  auto resumed = checked.edited.empty() ? engine.resume(id, session_hooks(s))
                                        : engine.resume_with(id, checked.edited, session_hooks(s));
  RILLE_TRY(s.run, run_blocking(*s.app.loop, std::move(resumed)));
  checked.script = checked.edited.empty() ? row.script : checked.edited;
  return {};
}

Result<FunctionRef> load_main(Session& s, const RunArguments& arguments, const Checked& checked) {
  App& app = s.app;
  Result<FunctionRef> main = arguments.code ? s.host->load("=-e", *arguments.code) : s.host->load_file(checked.script);
  if (main) return main;
  if (!checked.edited.empty()) {
    (void)app.engine->suspend(*s.run);  // the run can be resumed with its pinned script or a corrected one
  } else {
    // The script has not run yet: the run ends with the error.
    (void)run_blocking(*app.loop, app.engine->fail(s.run->id(), main.error()));
  }
  return main;
}

// Relative paths of a script mean the folder in which the run began, also when it is resumed elsewhere. `moved` is that
// folder if it is not the present one. A run that is cancelled goes on without the folder: it only cleans up.
Result<> enter_folder(Session& s, bool cancels, std::string& moved) {
  const std::string here = App::folder();
  RILLE_TRY(const std::string began,
            s.run->pinned(std::string(engine::working_folder), [&]() -> Result<std::string> { return here; }));
  if (began == here) return {};
  std::error_code failed;
  std::filesystem::current_path(began, failed);
  if (!failed) moved = began;
  if (!failed || cancels) return {};
  return make_error(
      ErrorKind::state,
      fmt::format("run {} began in the folder '{}', which cannot be entered: {}", s.run->id(), began, failed.message()),
      "make that folder again: relative paths of the script begin there; or cancel the run with `rille cancel`");
}

std::string title_of(const Session& s, const RunArguments& arguments, const std::string& moved) {
  if (s.app.json || (arguments.code && arguments.resume.empty())) return "";
  if (arguments.resume.empty()) return fmt::format("run {}", s.run->id());
  const std::string where = moved.empty() ? "" : ", in " + moved;
  if (arguments.fork_from.empty()) return fmt::format("resuming run {}{}", s.run->id(), where);
  return fmt::format("run {}, forked{}", s.run->id(), where);
}

// Drives an opened run to its end and returns the exit code.
Exit execute(Session& s, const RunArguments& arguments, const Checked& checked) {
  App& app = s.app;
  s.log.open(s.run->home() + "/log");
  const bool one_liner = arguments.code.has_value(), resumed = !arguments.resume.empty();
  if (resumed) s.log.write(fmt::format("[rille: resumed at {}]\n", format_utc(app.loop->clock().wall_us())));
  std::string directory = one_liner ? app.folder() : std::filesystem::path(checked.script).parent_path().string();
  std::string moved;
  if (!one_liner)
    if (Result<> r = enter_folder(s, arguments.cancel, moved); !r) {
      (void)app.engine->suspend(*s.run);
      return fail(app, r.error());
    }
  std::vector<lua_CFunction> words;
  if (one_liner) words.push_back(lua::open_as_global);
  Result<host::Grants> grants = host::settle_grants(*s.run, checked.grants);
  if (!grants) return fail(app, grants.error());
  s.grants = std::move(*grants);
  if (Result<> r = make_host(s, directory, one_liner ? host::Rules::open : host::Rules::workflow, words); !r)
    return fail(app, r.error());
  if (resumed && !one_liner && checked.edited.empty()) warn_if_edited(s, checked.script);
  Result<FunctionRef> main = load_main(s, arguments, checked);
  if (!main) return fail(app, main.error());
  const std::string title = title_of(s, arguments, moved);
  if (arguments.cancel) {
    app.loop->post([&s] { s.run->cancel(make_error(ErrorKind::cancelled, "cancelled by `rille cancel`")); });
    return drive(s, *main, title, [&s] { return finish_cancelled(s); });
  }
  if (resumed || one_liner)
    return drive(s, *main, title, [&s, &arguments] {
      const Exit code = finish(s);
      return code == Exit::ok && arguments.code_of ? arguments.code_of(**s.result) : code;
    });
  return drive(s, *main, title, [&s, &arguments] {
    if (is_refused(s)) return refuse(s);
    const Exit code = finish(s);
    warn_if_unread(s, arguments.script_arguments);
    return code;
  });
}

struct RunCommand final : Command {
  RunArguments arguments;
  void declare(Options& o) override {
    o.option("FILE", arguments.file, "the script").required();
    o.option("--tag", arguments.tag, "the budget that the run counts against, see `rille budget`");
    o.option("--deadline", arguments.deadline, "cancel the run after this time, e.g. 2h");
    o.option("--grant", arguments.grants, "grant only what the --grant options name: read=DIR, network=HOST, ..")
        .one_each();
    o.script_words(ScriptWords::after_file, arguments.script_arguments);
  }
  Exit run(App& app) override {
    if (asks_for_help(arguments.script_arguments)) return print_script_help(app, arguments.file);
    return run_to_end(app, arguments);
  }
};

struct ResumeCommand final : Command {
  RunArguments arguments;
  void declare(Options& o) override {
    o.option("RUN", arguments.resume, names_a_run).required();
    o.option("--with", arguments.with, "continue with this script, if it agrees with the record");
    o.flag("--retry-failed", arguments.retry_failed, "forget the error that ended the run, and retry");
  }
  Exit run(App& app) override { return run_to_end(app, arguments); }
};

const Registered<RunCommand> run_row({Group::run, "run", "run a workflow: rille run FILE [--x 1 ..]", Opens::nothing});
const Registered<ResumeCommand> resume_row({Group::run, "resume", "continue an interrupted run", Opens::nothing});

}  // namespace

Result<Value> parse_script_arguments(const std::vector<std::string>& words) {
  Value::Object out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& w = words[i];
    if (!w.starts_with("--") || w.size() < 3)
      return make_error(ErrorKind::invalid, fmt::format("'{}' is not an option for the script", w),
                        "write --name value, or --name=value");
    std::size_t equals = w.find('=');
    std::string name = w.substr(2, equals == std::string::npos ? equals : equals - 2);
    Value value(true);
    if (equals != std::string::npos) value = w.substr(equals + 1);
    else if (i + 1 < words.size() && !words[i + 1].starts_with("--")) value = words[++i];
    if (!out.try_emplace(name, std::move(value)).second)
      return make_error(ErrorKind::invalid, fmt::format("--{} is given twice", name),
                        fmt::format("give it once; a list is written --{} a,b,c", name));
  }
  return Value(std::move(out));
}

Exit run_to_end(App& app, const RunArguments& arguments) {
  Result<Checked> checked = check(arguments);
  if (!checked) return fail_usage(app, checked.error());
  if (Result<> r = open_engine(app); !r) return fail(app, r.error());
  Result<> opened;
  Session s(app);
  if (arguments.resume.empty()) {
    opened = start(s, arguments, *checked);
  } else {
    const bool back = goes_back(arguments);
    auto row = back ? app.engine->run(arguments.resume) : open_run(app, arguments.resume, false);
    if (!row) return fail(app, row.error());
    if (row->mode == "session" && !arguments.code && !back && checked->edited.empty()) return open_prompt(app, row->id);
    opened = go_on(s, arguments, *row, *checked);
  }
  return opened ? execute(s, arguments, *checked) : fail(app, opened.error());
}

}  // namespace rille::cli
