// The prompt's session: one run with one scope. Its loop is Lua (stdlib/repl); this is what that loop is made of.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/prompt/editor.hpp"
#include "bindings/cli/prompt/tensor_keeper.hpp"
#include "bindings/cli/session.hpp"

namespace rille::cli {

struct Repl : Session {
  explicit Repl(App& a) : Session(a) {}
  // The main fiber waits for this future, the next entry; nothing: the session ends.
  std::optional<Future<Result<std::optional<std::string>>>> next;
  bool idle = false;               // whether the main fiber is waiting for an entry
  int number = 1;                  // of the next entry
  engine::ScopeId scope = 0;       // of the running entry; 0: no entry is running
  int interrupts = 0;              // how often Ctrl-C was pressed during the entry
  bool interrupted = false;        // Ctrl-C has interrupted at least one entry of this session
  bool suspends = false;           // :suspend was entered
  int hangup = 0;                  // SIGTERM or SIGHUP, which suspends the session once the running entry has ended
  std::optional<Timer> last_wait;  // then the session ends without waiting any longer
  Editor* editor = nullptr;
  std::vector<std::string> entries;  // of this session
  std::shared_ptr<TensorKeeper> tensors = std::make_shared<TensorKeeper>(*app.loop);
};

// Opens the prompt's Lua side in a new state. The registry's Repl is set by set_repl before an entry runs.
int open_repl(lua_State* L);
void set_repl(lua_State* L, Repl& repl);

// What Tab and the line below an entry need; called by the editor while no entry runs.
Completions complete_entry(Repl& repl, const std::string& before);
std::string hint_for(Repl& repl, const std::string& before);
// Whether the parser expects more text at the source's end.
bool is_unfinished(const std::string& source);

}  // namespace rille::cli
