// A call of a host function, from the script's arguments to its result. Loop thread only, except for `abandoned` and
// `gate`.
#pragma once

#include "bindings/c/internal.hpp"

namespace rille::capi {

struct CallState {
  explicit CallState(Loop& loop) : future(loop) {}
  const HostFunction* function = nullptr;  // the called function; owned by the runtime
  std::string run_id;
  Value::Array arguments;
  std::shared_ptr<Gate> gate;
  Future<Result<Value>> future;        // the result of a suspended call
  std::atomic<bool> abandoned{false};  // true: nothing waits for the result any more
};

// Calls the function and, if it suspends, waits for the result. If `token` is cancelled, fails with the token's reason
// and drops a later result.
Async<Value> perform(std::shared_ptr<CallState> call, CancelToken token);

}  // namespace rille::capi

struct rille_call {
  std::shared_ptr<rille::capi::CallState> state;
  std::optional<rille::Result<rille::Value>> outcome;
  bool suspended = false;
  std::vector<std::string> texts;  // JSON texts that the host function has read; it borrows them until it returns

  void finish(rille::Result<rille::Value> result) {
    if (!suspended && !outcome) outcome.emplace(std::move(result));
  }
};

struct rille_completion {
  std::shared_ptr<rille::capi::CallState> state;
};
