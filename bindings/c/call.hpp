// A call of a host function, from the script's arguments to its result. Most functions read the arguments directly from
// Lua's stack. The arguments of a RILLE_STEP in a journaled run are copied as data first, because the journal compares
// and keeps them.
// Loop thread only, except for CallState's `abandoned` and `gate`.
#pragma once

#include "bindings/c/bridge.hpp"

namespace rille::capi {

// The result that a completion delivers.
struct Answer {
  Value value;
  std::shared_ptr<Copied> copied;  // set if the value is not plain data (handles, functions)
};

// The part of a journaled or suspended call that lives on after the host function has returned.
struct CallState {
  explicit CallState(Loop& loop) : future(loop) {}
  const HostFunction* function = nullptr;  // the called function; owned by the runtime
  std::string run_id;
  bool journaled = false;
  Value::Array arguments;             // of a journaled call only
  std::shared_ptr<MemoryUse> memory;  // the run's memory limit; may be null
  std::vector<MemoryHeld> held;       // counts `arguments`
  std::shared_ptr<Gate> gate;
  std::shared_ptr<Holdings> holdings;
  Future<Result<Answer>> future;       // becomes ready with the result of a suspended call
  Answer answer;                       // the value taken from `future`
  std::atomic<bool> abandoned{false};  // true: nothing waits for the result any more
};

// Calls the function of a journaled call and, if it suspends, waits for the result. If `token` is cancelled, fails with
// the token's reason and drops a later result.
Async<Value> perform(std::shared_ptr<CallState> call, CancelToken token);
// Waits for the result of a suspended call.
Async<Value> wait_for(std::shared_ptr<CallState> call, CancelToken token);

}  // namespace rille::capi

struct rille_call {
  rille_call(const rille::capi::HostFunction& f, rille::capi::Bridge& b, lua_State* l)
      : function(f), bridge(&b), L(l), count(static_cast<std::size_t>(lua_gettop(l))) {}
  explicit rille_call(std::shared_ptr<rille::capi::CallState> s)
      : function(*s->function), count(s->arguments.size()), state(std::move(s)) {}
  ~rille_call() {
    if (loan) end_loan();
  }
  rille_call(const rille_call&) = delete;

  enum class Has : std::uint8_t { nothing, number, boolean, pushed, data, error, suspended };

  const rille::capi::HostFunction& function;
  rille::capi::Bridge* bridge = nullptr;
  lua_State* L = nullptr;  // not null: the arguments are values 1 .. count on its stack, and results are pushed there
  std::size_t count;
  std::shared_ptr<rille::capi::CallState> state;  // null: neither journaled nor suspended
  Has has = Has::nothing;
  double number = 0;
  bool boolean = false;
  std::unique_ptr<rille::capi::Loan> loan;
  struct Seldom {
    rille::Value data;  // of a journaled call
    rille::Error error;
    std::vector<std::string> texts;  // JSON texts that the host function has read; it borrows them until it returns
    std::vector<rille::MemoryHeld> held;  // counts `texts`
  };
  std::unique_ptr<Seldom> seldom;

  bool open() const { return has == Has::nothing; }  // no result yet
  void fail(rille::Error e) {
    if (!open()) return;
    has = Has::error;
    more().error = std::move(e);
  }
  Seldom& more() {
    if (!seldom) seldom = std::make_unique<Seldom>();
    return *seldom;
  }
  const std::shared_ptr<rille::MemoryUse>& memory() const;  // the run's memory limit; may be null
  rille::capi::Loan& lender();
  void end_loan();
};

struct rille_completion {
  std::shared_ptr<rille::capi::CallState> state;
};
