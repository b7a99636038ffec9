// `rille check FILE`: finds mistakes in a script before it is run. It runs nothing of the script: the search is Lua
// (stdlib/tools/check.lua) in a state of its own.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "bindings/cli/command.hpp"
#include "bindings/cli/prompt/lua_tokens.hpp"
#include "bindings/host/lua.hpp"
#include "bindings/host/stdlib_table.hpp"
#include "runtime/core/base/did_you_mean.hpp"

namespace rille::cli {

namespace {

struct Problem {
  std::int64_t line = 0, column = 0;
  std::string message, hint;
};

struct CheckCommand final : Command {
  std::vector<std::string> files;
  int count = 0;  // of problems
  void declare(Options& o) override { o.option("FILE", files, "scripts").required(); }
  Exit run(App& app) override;
};

using State = std::unique_ptr<lua_State, void (*)(lua_State*)>;

// did_you_mean(word, names) -> a sentence, or "".
int suggest(lua_State* L) {
  std::vector<std::string> names;
  for (int i = 1; i <= static_cast<int>(lua_objlen(L, 2)); ++i) {
    lua_rawgeti(L, 2, i);
    if (const char* name = lua_tostring(L, -1)) names.emplace_back(name);
    lua_pop(L, 1);
  }
  const std::string near = did_you_mean(lua_tostring(L, 1), names);
  lua_pushstring(L, near.empty() ? "" : fmt::format("did you mean '{}'?", near).c_str());
  return 1;
}

void push_tokens(lua_State* L, const std::string& source) {
  lua_newtable(L);
  int i = 0;
  for (const LuaToken& token : lua_tokens(source)) {
    if (token.kind == LuaToken::Kind::comment) continue;
    lua_createtable(L, 0, 3);
    lua_pushstring(L, kind_name(token.kind));
    lua_setfield(L, -2, "kind");
    lua_pushinteger(L, static_cast<lua_Integer>(token.begin + 1));
    lua_setfield(L, -2, "first");
    lua_pushinteger(L, static_cast<lua_Integer>(token.end));
    lua_setfield(L, -2, "last");
    lua_rawseti(L, -2, ++i);
  }
}

// Pushes { { name =, source = }, .. }, the annotated modules.
void push_modules(lua_State* L) {
  lua_newtable(L);
  int i = 0;
  for (const host::StdlibModule& m : host::stdlib_modules()) {
    lua_createtable(L, 0, 2);
    lua_pushlstring(L, m.name.data(), m.name.size());
    lua_setfield(L, -2, "name");
    lua_pushlstring(L, m.source.data(), m.source.size());
    lua_setfield(L, -2, "source");
    lua_rawseti(L, -2, ++i);
  }
}

// Pushes the module's table.
bool push_module(lua_State* L, std::string_view name) {
  const std::optional<std::string_view> source = host::stdlib_source(name);
  return source && luaL_loadbuffer(L, source->data(), source->size(), "=rille") == 0 && lua_pcall(L, 0, 1, 0) == 0;
}

std::string field(lua_State* L, const char* name) {
  lua_getfield(L, -1, name);
  std::string text = lua_tostring(L, -1) ? lua_tostring(L, -1) : "";
  lua_pop(L, 1);
  return text;
}

// The state has the checker's module `check` and the index of annotations as globals.
State make_checker() {
  State L(luaL_newstate(), lua_close);
  luaL_openlibs(L.get());
  if (!push_module(L.get(), "rille.tools.luacats")) return {nullptr, lua_close};
  lua_getfield(L.get(), -1, "index");
  push_modules(L.get());
  if (lua_pcall(L.get(), 1, 1, 0) != 0) return {nullptr, lua_close};
  lua_setglobal(L.get(), "index");
  if (!push_module(L.get(), "rille.tools.check")) return {nullptr, lua_close};
  lua_setglobal(L.get(), "check");
  return L;
}

// "[string "train.lua"]:3: '=' expected near 'x'" -> line 3.
Problem syntax_error(std::string message) {
  Problem out{1, 1, std::move(message), ""};
  const std::size_t colon = out.message.find("]:");
  if (colon == std::string::npos) return out;
  const std::size_t space = out.message.find(": ", colon + 2);
  out.line = std::strtoll(out.message.c_str() + colon + 2, nullptr, 10);
  if (space != std::string::npos) out.message = out.message.substr(space + 2);
  return out;
}

Result<std::vector<Problem>> check(lua_State* L, const std::string& source) {
  std::vector<Problem> out;
  if (luaL_loadbuffer(L, source.data(), source.size(), "script") != 0) {
    out.push_back(syntax_error(lua_tostring(L, -1)));
    lua_pop(L, 1);
    return out;
  }
  lua_pop(L, 1);
  lua_getglobal(L, "check");
  lua_getfield(L, -1, "check");
  lua_pushlstring(L, source.data(), source.size());
  push_tokens(L, source);
  lua_getglobal(L, "index");
  lua_pushcfunction(L, suggest);
  if (lua_pcall(L, 4, 1, 0) != 0)
    return make_error(ErrorKind::internal, fmt::format("rille check: {}", lua_tostring(L, -1)), "");
  for (int i = 1; i <= static_cast<int>(lua_objlen(L, -1)); ++i) {
    lua_rawgeti(L, -1, i);
    Problem problem;
    problem.line = std::strtoll(field(L, "line").c_str(), nullptr, 10);
    problem.column = std::strtoll(field(L, "column").c_str(), nullptr, 10);
    problem.message = field(L, "message");
    problem.hint = field(L, "hint");
    out.push_back(std::move(problem));
    lua_pop(L, 1);
  }
  lua_pop(L, 2);
  return out;
}

Exit CheckCommand::run(App& app) {
  const State L = make_checker();
  if (!L) return fail(app, make_error(ErrorKind::internal, "rille check: the annotations cannot be read", ""));
  Value::Array all;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return fail(app, errno_error("cannot read", file, errno));
    std::string source(std::istreambuf_iterator<char>(in), {});
    if (source.starts_with("#"))
      source.replace(0, std::min(source.find('\n'), source.size()), "");  // "#!/usr/bin/rille"
    Result<std::vector<Problem>> problems = check(L.get(), source);
    if (!problems) return fail(app, problems.error());
    for (const Problem& p : *problems) {
      if (app.json)
        all.push_back(Value()
                          .set("file", file)
                          .set("line", p.line)
                          .set("column", p.column)
                          .set("message", p.message)
                          .set("hint", p.hint));
      else
        app.terminal.out(fmt::format("{}:{}:{}: {}{}\n", file, p.line, p.column, p.message,
                                     p.hint.empty() ? "" : fmt::format(" ({})", p.hint)));
      ++count;
    }
  }
  if (app.json) app.terminal.out(Value(std::move(all)).to_json_pretty() + "\n");
  return count ? Exit::script : Exit::ok;
}

const Registered<CheckCommand> check_row({Group::run, "check", "find mistakes in a script before it runs",
                                          Opens::nothing});

}  // namespace

}  // namespace rille::cli
