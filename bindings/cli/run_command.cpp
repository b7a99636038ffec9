// `rille FILE`, `rille run`, `rille resume`, `rille -e`: one run from its start, or from where it was, to its end.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "bindings/cli/session.hpp"
#include "bindings/host/lua.hpp"
#include "bindings/host/open.hpp"
#include "bindings/lua/open.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/engine/remove.hpp"

namespace rille::cli {

namespace {

// The pinned version runs; a user who has edited the file since is told so.
void warn_if_edited(Session& s, const std::string& script) {
  std::ifstream file(script, std::ios::binary);
  if (!file) return;
  std::stringstream text;
  text << file.rdbuf();
  std::string name = std::filesystem::path(script).filename().string();  // as LuaHost::load_file pins it
  Result<std::string> pinned = s.run->pinned(name, [&]() -> Result<std::string> { return text.str(); });
  if (pinned && *pinned != text.str())
    s.app.terminal.note(
        fmt::format("{} has changed since this run began; the version that it began with goes on", script));
}

// A script beside the one that was meant, with nearly its name; "": none.
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

// A word that is neither a command nor a file.
Error no_script(const std::string& word, const std::vector<std::string>& commands) {
  std::error_code ec;
  if (std::filesystem::is_directory(word, ec))
    return make_error(ErrorKind::invalid, fmt::format("'{}' is a folder, not a script", word),
                      "name the file: rille FILE.lua");
  if (const std::string file = nearest_file(word); !file.empty())
    return make_error(ErrorKind::invalid, fmt::format("there is no script '{}'", word),
                      fmt::format("did you mean {}?", file));
  std::string near = word.find('/') == std::string::npos ? did_you_mean(word, commands) : "";
  if (word == "version") near = "--version";
  if (word == "help") near = "--help";
  return make_error(
      ErrorKind::invalid, fmt::format("there is no script '{}'", word),
      near.empty() ? "rille --help lists the commands" : fmt::format("did you mean the command `rille {}`?", near));
}

// Ended by rille.args, before it did anything: such a run is not kept.
bool is_refused(const Session& s) {
  if (*s.result || s.result->error().code != "script_arguments") return false;
  auto entries = s.app.engine->entries(s.run->id());
  auto leases = s.app.engine->leases().of_run(s.run->id());
  return entries && entries->empty() && leases && leases->empty();
}

int refuse(Session& s) {
  App& app = s.app;
  Result<> gone = run_blocking(*app.loop, engine::remove_run(*app.engine, s.run->id()));
  if (app.json) app.terminal.out(Value().set("error", error_to_value(s.result->error())).to_json_pretty() + "\n");
  else app.terminal.error(s.result->error(), app.trace);
  if (gone) app.terminal.note("nothing was begun, and no run is kept");
  return 2;
}

// A script without rille.args would let a misspelt option pass in silence.
void warn_if_unread(Session& s, const std::vector<std::string>& words) {
  if (words.empty()) return;
  lua_State* L = s.host->lua();
  host::StackGuard guard(L);
  host::push_rille_core(L);
  lua_getfield(L, -1, "arguments_read");
  if (!lua_toboolean(L, -1))
    s.app.terminal.note(fmt::format("nothing in the script has read its options ({}): see rille.args", words.front()));
}

int finish(Session& s) {
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
    return 3;
  }
  return r ? 0 : exit_code(r.error());
}

// That it ended by the cancel is what was asked for.
int finish_cancelled(Session& s) {
  const Result<Value>& r = *s.result;
  if (r || r.error().kind != ErrorKind::cancelled) return finish(s);
  const Error why = r.error();
  s.result.emplace(Value());
  int code = finish(s);
  s.app.terminal.note(fmt::format("run {}: {}", s.run->id(), why.message));
  return code;
}

}  // namespace

Result<Value> parse_script_arguments(const std::vector<std::string>& words) {
  Value::Object out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& w = words[i];
    if (!w.starts_with("--") || w.size() < 3)
      return make_error(ErrorKind::invalid, fmt::format("'{}' is no option of the script", w),
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

int run_command(App& app, const RunArguments& arguments) {
  Session s(app);
  auto usage = [&](const Error& e) { return fail(app, e), 2; };
  std::string script, edited;
  Value input;
  if (!arguments.with.empty()) {
    std::error_code ec;
    edited = std::filesystem::absolute(arguments.with, ec).lexically_normal().string();
    if (!std::filesystem::is_regular_file(edited, ec))
      return usage(make_error(ErrorKind::invalid, fmt::format("there is no script '{}'", arguments.with)));
  }
  if (arguments.resume.empty() && !arguments.code) {
    std::error_code ec;
    script = std::filesystem::absolute(arguments.file, ec).lexically_normal().string();
    if (!std::filesystem::is_regular_file(script, ec)) return usage(no_script(arguments.file, app.commands));
    if (access(script.c_str(), R_OK) != 0) return usage(errno_error("open", arguments.file, errno));
    Result<Value> parsed = parse_script_arguments(arguments.script_arguments);
    if (!parsed) return usage(parsed.error());
    input = std::move(*parsed);
  }
  std::int64_t deadline_ms = 0;
  if (!arguments.deadline.empty()) {
    Result<std::int64_t> ms = parse_duration_ms(arguments.deadline);
    if (ms && *ms <= 0) ms = make_error(ErrorKind::invalid, fmt::format("'{}' is over at once", arguments.deadline));
    if (!ms) {
      Error e = std::move(ms).error();
      e.message = "--deadline: " + e.message;
      return usage(e);
    }
    deadline_ms = *ms;
  }
  if (Result<> r = open_engine(app); !r) return fail(app, r.error());
  if (!arguments.resume.empty()) {
    bool again = !arguments.fork_from.empty() || arguments.retry_failed;
    auto row = again ? app.engine->run(arguments.resume) : open_run(app, arguments.resume, false);
    if (!row) return fail(app, row.error());
    if (row->mode == "session" && !arguments.code && !again && edited.empty()) return repl_command(app, row->id);
    Result<std::string> id = again ? go_back(app, arguments) : Result<std::string>(row->id);
    if (!id) return fail(app, id.error());
    auto resumed = edited.empty() ? app.engine->resume(*id, session_hooks(s))
                                  : app.engine->resume_with(*id, edited, session_hooks(s));
    auto run = run_blocking(*app.loop, std::move(resumed));
    if (!run) return fail(app, run.error());
    s.run = std::move(*run);
    script = edited.empty() ? row->script : edited;
  } else {
    engine::RunSpec spec;
    spec.script = !arguments.code ? script : "-e";
    spec.mode = !arguments.code ? engine::Mode::durable : engine::Mode::session;
    spec.args = std::move(input);
    spec.tag = arguments.tag;
    spec.deadline_ms = deadline_ms;
    auto run = run_blocking(*app.loop, app.engine->start(spec, session_hooks(s)));
    if (!run) return fail(app, run.error());
    s.run = std::move(*run);
  }
  s.log.open(s.run->home() + "/log");
  bool one_liner = arguments.code.has_value();
  std::string directory = one_liner ? app.folder() : std::filesystem::path(script).parent_path().string();
  std::vector<lua_CFunction> words;
  if (one_liner) words.push_back(lua::open_as_global);
  if (Result<> r = make_host(s, directory, one_liner ? host::Rules::open : host::Rules::workflow, words); !r)
    return fail(app, r.error());
  if (!arguments.resume.empty() && !one_liner && edited.empty()) warn_if_edited(s, script);
  Result<FunctionRef> main = one_liner ? s.host->load("=-e", *arguments.code) : s.host->load_file(script);
  if (!main && !edited.empty()) {
    (void)app.engine->suspend(*s.run);  // it may go on with its own script, or with a better one
    return fail(app, main.error());
  }
  if (!main) {
    // Nothing has begun: the run ends here, with the error.
    Error e = main.error();
    (void)run_blocking(*app.loop, app.engine->fail(s.run->id(), e));
    return fail(app, e);
  }
  std::string title = arguments.resume.empty()      ? fmt::format("run {}", s.run->id())
                      : arguments.fork_from.empty() ? fmt::format("resuming run {}", s.run->id())
                                                    : fmt::format("run {}, forked", s.run->id());
  if ((one_liner && arguments.resume.empty()) || app.json) title.clear();
  if (arguments.cancel) {
    app.loop->post([&s] { s.run->cancel(make_error(ErrorKind::cancelled, "cancelled by `rille cancel`")); });
    return drive(s, *main, title, [&s] { return finish_cancelled(s); });
  }
  const bool fresh = arguments.resume.empty() && !one_liner;
  return drive(s, *main, title, [&s, &arguments, fresh] {
    if (fresh && is_refused(s)) return refuse(s);
    const int code = finish(s);
    if (fresh) warn_if_unread(s, arguments.script_arguments);
    return code;
  });
}

}  // namespace rille::cli
