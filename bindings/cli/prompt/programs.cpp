// Programs that have the terminal while they run: the shell's commands and the user's editor.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "bindings/cli/prompt/primitives.hpp"
#include "bindings/host/await.hpp"
#include "bindings/host/bind.hpp"
#include "runtime/core/loop/subprocess.hpp"

namespace rille::cli {

namespace {

using namespace rille::host;

Async<int> run_on_terminal(Loop& loop, std::vector<std::string> argv, CancelToken token) {
  SubprocessOptions options;
  options.argv = std::move(argv);
  options.in = options.out = options.err = SubprocessOptions::Output::inherit;
  RILLE_CO_TRY(const std::unique_ptr<Subprocess> child, Subprocess::start(loop, options));
  RILLE_CO_TRY(const ExitStatus status, co_await child->wait(std::move(token)));
  co_return status.signal ? 128 + status.signal : status.code;
}

// shell { "ls", "-l" } -> the exit code. The program has the terminal until it ends.
int prompt_shell(lua_State* L) {
  Repl& r = repl_of(L);
  std::vector<std::string> argv;
  for (int i = 1; i <= static_cast<int>(lua_objlen(L, 1)); ++i) {
    lua_rawgeti(L, 1, i);
    argv.emplace_back(check_text(L, -1, "word"));
    lua_pop(L, 1);
  }
  return await(L, run_on_terminal(*r.app.loop, std::move(argv), {}), [](lua_State* l, int code) {
    push(l, static_cast<std::int64_t>(code));
    return 1;
  });
}

// Opens the user's editor with the text, or with the file. Gives what was saved.
Async<std::string> edit_text(Loop& loop, std::string text, std::string path) {
  std::string command = "vi";
  for (const char* name : {"EDITOR", "VISUAL"})
    if (const char* value = std::getenv(name); value && *value) command = value;
  const bool temporary = path.empty();
  if (temporary) {
    path = (std::filesystem::temp_directory_path() / "rille-entry-XXXXXX.lua").string();
    const int file = ::mkostemps(path.data(), 4, O_CLOEXEC);
    if (file < 0) co_return errno_error("cannot make", path, errno);
    const ssize_t written = ::write(file, text.data(), text.size());
    ::close(file);
    if (written != static_cast<ssize_t>(text.size())) co_return errno_error("cannot write", path, ENOSPC);
  }
  std::vector<std::string> argv = {"/bin/sh", "-c", command + " \"$1\"", "sh", path};
  Result<int> code = co_await run_on_terminal(loop, std::move(argv), {});
  std::ifstream in(path, std::ios::binary);
  std::string saved(std::istreambuf_iterator<char>(in), {});
  if (temporary) ::unlink(path.c_str());
  if (!code) co_return code.error();
  if (*code != 0)
    co_return make_error(ErrorKind::state, "the editor '" + command + "' ended with exit code " + std::to_string(*code),
                         "set EDITOR to another one; nothing was run");
  while (!saved.empty() && saved.back() == '\n') saved.pop_back();
  co_return saved;
}

int prompt_edit(lua_State* L) {
  Repl& r = repl_of(L);
  return await(L, edit_text(*r.app.loop, std::string(check_text(L, 1, "text")), std::string(check_text(L, 2, "path"))),
               [](lua_State* l, std::string text) {
                 push(l, text);
                 return 1;
               });
}

}  // namespace

void add_programs(lua_State* L) {
  set_async(L, "shell", bind<prompt_shell>);
  set_async(L, "edit", bind<prompt_edit>);
}

}  // namespace rille::cli
