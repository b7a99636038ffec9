// Shared by step.cpp, step_plain.cpp and step_tx.cpp: the Lua object that represents a step while its body runs.
#pragma once

#include "bindings/host/captured.hpp"
#include "bindings/lua/workflow/verb.hpp"
#include "runtime/core/store/transaction.hpp"

namespace rille::lua {

struct StepObject {
  engine::StepTicket ticket;
  std::string name;
  std::string run;       // id of the run that contains the step
  bool limited = false;  // the step's body has a time limit
  bool plain = false;    // the object stands for the option-less step that its fiber runs now (step_plain.cpp)
  Random outer;          // the fiber's random generator, saved while the body uses one seeded for the step
  Captured before;
  std::string database;  // path of the database file of a step with effect "tx"; "" for other steps
  std::shared_ptr<store::Transaction> transaction;  // not null while the body of a "tx" step runs
  bool rehearsed = false;                           // the run is a rehearsal, so the transaction will be rolled back
};

void add_plain_step_functions(lua_State* L);  // adds to the table of primitives at the stack's top
void add_tx_functions(lua_State* L);
// Returns the database file named in the options of a step with effect "tx"; a relative path starts at the script's
// folder. Raises invalid.
std::string read_database(lua_State* L, int options, const std::string& step);
void push_database(lua_State* L, const StepObject& step);  // pushes ctx.db, the object for SQL statements
// Ends the transaction after the body: commits if the body succeeded, else rolls back. Returns the body's result, or
// the error of the commit.
Result<Value> end_transaction(StepObject& step, Result<Value> body, std::int64_t at_us);

}  // namespace rille::lua
