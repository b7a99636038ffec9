// What step.cpp, step_plain.cpp and step_tx.cpp share: the object that stands for a step while its body runs.
#pragma once

#include "bindings/host/captured.hpp"
#include "bindings/lua/workflow/verb.hpp"
#include "runtime/core/store/transaction.hpp"

namespace rille::lua {

struct StepObject {
  engine::StepTicket ticket;
  std::string name;
  std::string run;       // its id
  bool limited = false;  // its body's time is
  bool plain = false;    // stands for whichever step its fiber runs on the short way
  Random outer;          // the fiber's generator, put aside while the body draws from its own
  Captured before;
  std::string database;                             // of a step whose effect is a transaction: the file; "" otherwise
  std::shared_ptr<store::Transaction> transaction;  // while its body runs
  bool rehearsed = false;                           // nothing of that transaction stays
};

void add_plain_step_functions(lua_State* L);  // to the table of primitives on top
void add_tx_functions(lua_State* L);
// The file that the options of a step with effect "tx" name, as seen from the script's folder; raises invalid.
std::string read_database(lua_State* L, int options, const std::string& step);
void push_database(lua_State* L, const StepObject& step);  // what ctx.db is
// The end of the body: commits, if it has ended well. The body's result, or why it could not be committed.
Result<Value> end_transaction(StepObject& step, Result<Value> body, std::int64_t at_us);

}  // namespace rille::lua
