// The C++ side of the prompt's loop (stdlib/repl): compiling and running entries, reading variables without running
// code.
#include "bindings/cli/prompt/primitives.hpp"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "bindings/cli/prompt/lua_tokens.hpp"
#include "bindings/host/await.hpp"
#include "bindings/host/bind.hpp"
#include "bindings/host/keys.hpp"
#include "bindings/host/object.hpp"
#include "bindings/host/open.hpp"
#include "bindings/host/stdlib_table.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::cli {

namespace {

using namespace rille::host;

constexpr std::size_t completions_max = 500;

char key_repl;                // in the Lua registry: the state's Repl
char key_complete, key_hint;  // and the functions of stdlib/repl/complete.lua

// Pushes the table of the session's variables.
Result<> push_variables(lua_State* L) {
  RILLE_CHECK(LuaHost::of(L).compile(L, "", "=prompt", false));
  lua_getfenv(L, -1);
  lua_remove(L, -2);
  return {};
}

Async<std::optional<std::string>> next_entry(Repl& r) {
  Future<Result<std::optional<std::string>>> future(*r.app.loop);
  r.next = future;
  r.idle = true;
  co_return co_await future;
}

int prompt_read(lua_State* L) {
  Repl& r = repl_of(L);
  r.number = static_cast<int>(check_integer(L, 1, "number"));
  return await(L, next_entry(r), [](lua_State* l, std::optional<std::string> entry) {
    if (!entry) return 0;
    push(l, *entry);
    return 1;
  });
}

// Copies the entry's local variables at its end into the session's variables.
int prompt_keep(lua_State* L) {
  lua_Debug ar;
  if (!lua_getstack(L, 1, &ar) || !lua_getinfo(L, "f", &ar)) return 0;
  lua_getfenv(L, -1);
  const int env = lua_gettop(L);
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

constexpr std::string_view keeps = "__rille_keep()";

// The places at which an entry may be cut into statements and a last expression: behind a semicolon or a line that
// stands in no block or bracket. The last one first.
std::vector<std::size_t> cuts(const std::string& source) {
  constexpr std::size_t most = 16;
  std::vector<std::size_t> out;
  int depth = 0;
  std::size_t behind = 0;
  for (const LuaToken& token : lua_tokens(source)) {
    const std::string_view gap = std::string_view(source).substr(behind, token.begin - behind);
    if (depth == 0 && behind > 0 && gap.find('\n') != std::string_view::npos) out.push_back(token.begin);
    depth += lua_depth(std::string_view(source).substr(token.begin, token.end - token.begin));
    if (depth == 0 && source[token.begin] == ';' && token.kind == LuaToken::Kind::mark) out.push_back(token.end);
    behind = token.end;
  }
  std::reverse(out.begin(), out.end());
  if (out.size() > most) out.resize(most);
  return out;
}

// Returns the expressions' values, but not by a tail call, after which an error could not name the entry.
std::string values_of(const std::string& expressions) {
  return "return (function(...) return ... end)(" + expressions + "\n)";
}

// The texts that an entry may mean, the likeliest first: an expression, which returns its values; statements with an
// expression behind them; statements. The local variables of statements are kept for the next entries.
std::vector<std::string> readings(const std::string& source) {
  std::vector<std::string> out = {values_of(source)};
  for (const std::size_t at : cuts(source)) {
    std::string head = source.substr(0, at);
    while (!head.empty() && (head.back() == ';' || head.back() == ' ')) head.pop_back();
    const std::string tail = source.substr(at);
    if (tail.find_first_not_of(" \t\n") == std::string::npos) continue;
    out.push_back(head + (head.ends_with("\n") ? "" : " ") + "do end " + std::string(keeps) + " " + values_of(tail));
  }
  out.push_back(source + "\n" + std::string(keeps));
  return out;
}

// Compiles an entry. Nil and the error, if it does not compile.
int prompt_compile(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  const std::string source(check_text(L, 1, "entry")), chunk(check_text(L, 2, "chunk"));
  for (const std::string& text : readings(source))
    if (host.compile(L, text, chunk, false).ok()) return 1;
  Result<> plain = host.compile(L, source, chunk, false);
  if (plain) return 1;
  lua_pushnil(L);
  push_error(L, plain.error());
  return 2;
}

int prompt_enter(lua_State* L) {
  Repl& r = repl_of(L);
  r.scope = r.run->entry_enter(1);
  r.interrupts = 0;
  push(L, static_cast<std::int64_t>(r.scope));
  return 1;
}

int prompt_leave(lua_State* L) {
  Repl& r = repl_of(L);
  r.run->scope_leave(1, static_cast<engine::ScopeId>(check_integer(L, 1, "scope")));
  r.scope = 0;
  r.host->left_scope();
  return 0;
}

int prompt_report(lua_State* L) {
  Repl& r = repl_of(L);
  r.app.terminal.error(caught_error(L, 1), r.app.trace);
  return 0;
}

// Returns what was caught as an error with its fields.
int prompt_error_of(lua_State* L) {
  push_error(L, caught_error(L, 1));
  return 1;
}

// Returns the terminal's width.
int prompt_columns(lua_State* L) {
  push(L, static_cast<std::int64_t>(repl_of(L).app.terminal.width()));
  return 1;
}

// Returns the terminal's height; 0: it has none.
int prompt_rows(lua_State* L) {
  winsize size{};
  push(L, static_cast<std::int64_t>(ioctl(1, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0));
  return 1;
}

int prompt_done(lua_State*) { return 0; }

// Returns { { name =, source =, file = }, .. }: the annotated Lua modules that help() reads.
int prompt_modules(lua_State* L) {
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
int prompt_class_name(lua_State* L) {
  push(L, type_name(L, 1));
  return 1;
}

// Sets a variable that all later entries of the session see.
Result<int> prompt_set(lua_State* L) {
  RILLE_CHECK(push_variables(L));
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_rawset(L, -3);
  return 0;
}

Result<int> prompt_variables(lua_State* L) {
  RILLE_CHECK(push_variables(L));
  return 1;
}

// step(value, name, [path]) -> the value's field, or nil. Runs no code except the loading of Rille's own modules.
int prompt_step(lua_State* L) {
  const std::string name(check_text(L, 2, "name"));
  const bool ours = lua_type(L, 3) == LUA_TSTRING && std::string_view(lua_tostring(L, 3)) == "rille";
  lua_settop(L, 1);
  if (ours) {  // modules are loaded when their field is read; there is an error for a field that is not there
    lua_pushcfunction(L, [](lua_State* l) {
      lua_gettable(l, 1);
      return 1;
    });
    lua_insert(L, 1);
    push(L, name);
    if (lua_pcall(L, 2, 1, 0) != 0) lua_pushnil(L);
    return 1;
  }
  for (int level = 0; level < 4 && lua_istable(L, -1); ++level) {
    push(L, name);
    lua_rawget(L, -2);
    if (!lua_isnil(L, -1)) return 1;
    lua_pop(L, 1);
    if (!luaL_getmetafield(L, -1, "__index")) break;
  }
  lua_pushnil(L);
  return 1;
}

// names(value) -> the names of its fields and methods.
int prompt_names(lua_State* L) {
  lua_settop(L, 1);
  lua_newtable(L);
  int count = 0;
  const auto add = [&](std::string_view name) {
    push(L, name);
    lua_rawseti(L, 2, ++count);
  };
  lua_pushvalue(L, 1);
  if (!lua_istable(L, -1)) {
    for (const std::string& name : object_names(L, 1)) add(name);
    if (!luaL_getmetafield(L, 1, "__index")) lua_pushnil(L);
  }
  for (int level = 0; level < 4 && lua_istable(L, -1); ++level) {
    const int table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
      if (lua_type(L, -2) == LUA_TSTRING) add(lua_tostring(L, -2));
    if (!luaL_getmetafield(L, table, "__index")) break;
  }
  lua_pushvalue(L, 2);
  return 1;
}

// The modules that scripts use, without the parts that they are made of.
int prompt_stdlib(lua_State* L) {
  lua_newtable(L);
  int i = 0;
  for (const StdlibModule& m : stdlib_modules()) {
    const std::size_t dots = static_cast<std::size_t>(std::count(m.name.begin(), m.name.end(), '.'));
    if (dots != 1 || m.name == "rille.repl" || m.name == "rille.tools" || m.name == "rille.meta") continue;
    push(L, m.name);
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

// files("a/b") -> the paths that begin so; folders end in "/".
int prompt_files(lua_State* L) {
  namespace fs = std::filesystem;
  const std::string typed(check_text(L, 1, "path"));
  const std::size_t slash = typed.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
  const std::string rest = typed.substr(folder.size());
  std::string place = folder.empty() ? "." : folder;
  if (const char* home = std::getenv("HOME"); home && place.starts_with("~/")) place.replace(0, 1, home);
  lua_newtable(L);
  std::error_code failed;
  int count = 0;
  for (fs::directory_iterator it(place, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(rest) || (rest.empty() && name.starts_with("."))) continue;
    std::error_code ignored;
    push(L, folder + name + (it->is_directory(ignored) ? "/" : ""));
    lua_rawseti(L, -2, ++count);
    if (count == static_cast<int>(completions_max)) break;
  }
  return 1;
}

// tokens(text) -> { { kind =, first =, last =, open = }, .. }
int prompt_tokens(lua_State* L) {
  lua_newtable(L);
  int i = 0;
  for (const LuaToken& token : lua_tokens(check_text(L, 1, "text"))) {
    lua_createtable(L, 0, 4);
    set_field(L, "kind", kind_name(token.kind));
    set_field(L, "first", static_cast<std::int64_t>(token.begin + 1));
    set_field(L, "last", static_cast<std::int64_t>(token.end));
    set_field(L, "open", token.open);
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

// source(f) -> the text of a function of the user's; nil and why there is none.
int prompt_source(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  lua_Debug ar;
  lua_pushvalue(L, 1);
  if (lua_isfunction(L, 1) && lua_getinfo(L, ">S", &ar)) {
    const auto chunk = host.chunks().find(ar.source);
    if (chunk != host.chunks().end() && ar.linedefined > 0) {
      std::string_view text = host.source_of(chunk->second);
      std::size_t begin = 0;
      for (int line = 1; line < ar.linedefined && begin < text.size(); ++line) begin = text.find('\n', begin) + 1;
      std::size_t end = begin;
      for (int line = ar.linedefined; line <= ar.lastlinedefined && end < text.size(); ++line)
        end = std::min(text.find('\n', end), text.size() - 1) + 1;
      while (end > begin && text[end - 1] == '\n') --end;
      push(L, text.substr(begin, end - begin));
      return 1;
    }
  }
  lua_pushnil(L);
  push(L, "it has no source here: it is written in C, or is a part of Rille");
  return 2;
}

int prompt_on_edit(lua_State* L) {
  lua_settop(L, 2);
  set_registry(L, &key_hint);
  set_registry(L, &key_complete);
  return 0;
}

int prompt_now_ns(lua_State* L) {
  push(L, static_cast<double>(repl_of(L).app.loop->clock().monotonic_ns()));
  return 1;
}

int prompt_read_file(lua_State* L) {
  const std::string path(check_text(L, 1, "path"));
  std::ifstream in(path, std::ios::binary);
  std::error_code none;
  if (!in || std::filesystem::is_directory(path, none)) {
    lua_pushnil(L);
    push(L, "there is no file '" + path + "'");
    return 2;
  }
  push(L, std::string(std::istreambuf_iterator<char>(in), {}));
  return 1;
}

// The path of this program.
int prompt_program(lua_State* L) {
  push(L, repl_of(L).app.self_exe);
  return 1;
}

int prompt_directory(lua_State* L) {
  std::error_code none;
  push(L, std::filesystem::current_path(none).string());
  return 1;
}

// Forgets the source of a script's module, so that `require` reads its file again.
int prompt_forget(lua_State* L) {
  LuaHost::of(L).modules().erase(std::string(check_text(L, 1, "module")));
  return 0;
}

int prompt_entry(lua_State* L) {
  const Repl& r = repl_of(L);
  const std::int64_t number = check_integer(L, 1, "number");
  if (number < 1 || number > static_cast<std::int64_t>(r.entries.size())) return 0;
  push(L, r.entries[static_cast<std::size_t>(number) - 1]);
  return 1;
}

// history(part, most) -> the newest entries with that text, the oldest of them first.
int prompt_history(lua_State* L) {
  Repl& r = repl_of(L);
  const std::string part(check_text(L, 1, "text"));
  const auto most = static_cast<std::size_t>(check_integer(L, 2, "most"));
  std::vector<std::string> found;
  if (r.editor) {
    const History& kept = r.editor->history();
    for (std::size_t at = kept.size(); at-- > 0 && found.size() < most;)
      if (kept.at(at).find(part) != std::string::npos) found.push_back(kept.at(at));
  }
  lua_newtable(L);
  for (std::size_t i = 0; i < found.size(); ++i) {
    push(L, found[found.size() - 1 - i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

int prompt_offer(lua_State* L) {
  Repl& r = repl_of(L);
  if (r.editor) r.editor->offer(std::string(check_text(L, 1, "text")));
  return 0;
}

// rented() -> { { name =, price = }, .. }: what the session rents.
Result<int> prompt_rented(lua_State* L) {
  const Repl& r = repl_of(L);
  RILLE_TRY(const auto leases, r.app.engine->leases().of_run(r.run->id()));
  lua_newtable(L);
  int i = 0;
  for (const auto& l : leases) {
    if (!l.billable() || lease::is_volume(l)) continue;
    lua_createtable(L, 0, 2);
    set_field(L, "name", std::string_view(l.name));
    set_field(L, "price", std::string_view(l.price().shown()));
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

int prompt_ask_to_suspend(lua_State* L) {
  repl_of(L).suspends = true;
  return 0;
}

}  // namespace

Repl& repl_of(lua_State* L) {
  get_registry(L, &key_repl);
  auto* r = static_cast<Repl*>(lua_touserdata(L, -1));
  lua_pop(L, 1);
  return *r;
}

int open_repl(lua_State* L) {
  lua_settop(L, 1);
  push_rille_core(L);
  const int core = lua_gettop(L);
  lua_newtable(L);
  set_functions(L, {{"compile", bind<prompt_compile>},
                    {"enter", bind<prompt_enter>},
                    {"leave", bind<prompt_leave>},
                    {"report", bind<prompt_report>},
                    {"columns", bind<prompt_columns>},
                    {"rows", bind<prompt_rows>},
                    {"error", bind<prompt_error_of>},
                    {"modules", bind<prompt_modules>},
                    {"class", bind<prompt_class_name>},
                    {"done", bind<prompt_done>},
                    {"set", bind<prompt_set>},
                    {"variables", bind<prompt_variables>},
                    {"step", bind<prompt_step>},
                    {"names", bind<prompt_names>},
                    {"stdlib", bind<prompt_stdlib>},
                    {"files", bind<prompt_files>},
                    {"tokens", bind<prompt_tokens>},
                    {"source", bind<prompt_source>},
                    {"on_edit", bind<prompt_on_edit>},
                    {"now_ns", bind<prompt_now_ns>},
                    {"read_file", bind<prompt_read_file>},
                    {"directory", bind<prompt_directory>},
                    {"program", bind<prompt_program>},
                    {"forget", bind<prompt_forget>},
                    {"entry", bind<prompt_entry>},
                    {"history", bind<prompt_history>},
                    {"offer", bind<prompt_offer>},
                    {"rented", bind<prompt_rented>},
                    {"suspend", bind<prompt_ask_to_suspend>}});
  set_async(L, "read", bind<prompt_read>);
  add_keeping(L);
  add_programs(L);
  for (const char* name : {"trace", "loaded"}) {
    lua_getfield(L, core, name);
    lua_setfield(L, -2, name);
  }
  set_global(L, "__rille_prompt");
  lua_pushcfunction(L, bind<prompt_keep>);
  set_global(L, "__rille_keep");
  get_registry(L, &key_rille);
  set_global(L, "rille");
  return 0;
}

void set_repl(lua_State* L, Repl& repl) {
  lua_pushlightuserdata(L, &repl);
  set_registry(L, &key_repl);
}

Completions complete_entry(Repl& repl, const std::string& before) {
  Completions out;
  out.begin = before.size();
  lua_State* L = repl.host->lua();
  StackGuard guard(L);
  (void)protect(L, [&](lua_State* l) {
    get_registry(l, &key_complete);
    push(l, before);
    lua_call(l, 1, 2);
    if (!lua_istable(l, -1)) return;
    out.begin = static_cast<std::size_t>(std::max<lua_Integer>(lua_tointeger(l, -2) - 1, 0));
    const int count = static_cast<int>(std::min<std::size_t>(lua_objlen(l, -1), completions_max));
    for (int i = 1; i <= count; ++i) {
      lua_rawgeti(l, -1, i);
      out.words.emplace_back(lua_tostring(l, -1));
      lua_pop(l, 1);
    }
  });
  return out;
}

std::string hint_for(Repl& repl, const std::string& before) {
  std::string out;
  lua_State* L = repl.host->lua();
  StackGuard guard(L);
  (void)protect(L, [&](lua_State* l) {
    get_registry(l, &key_hint);
    push(l, before);
    lua_call(l, 1, 1);
    if (const char* text = lua_tostring(l, -1)) out = text;
  });
  return out;
}

bool is_unfinished(const std::string& source) {
  std::unique_ptr<lua_State, void (*)(lua_State*)> L(luaL_newstate(), lua_close);
  if (!L) return false;
  const auto compiles = [&](const std::string& text) {
    return luaL_loadbuffer(L.get(), text.data(), text.size(), "=prompt") == 0;
  };
  const auto ends_early = [&](const std::string& text) {
    return !compiles(text) && std::string_view(lua_tostring(L.get(), -1)).ends_with("near '<eof>'");
  };
  if (!ends_early(source + "\n") && !ends_early("return " + source + "\n")) return false;
  const std::vector<std::string> texts = readings(source);
  return std::none_of(texts.begin(), texts.end(), compiles);
}

}  // namespace rille::cli
