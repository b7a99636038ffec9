// A call of a host function, from the script's arguments to its result. Loop thread only, except for `abandoned` and
// `gate`.
#pragma once

#include "bindings/c/internal.hpp"

namespace rille::capi {

struct CallState {
  explicit CallState(Loop& loop) : future(loop) {}
  const HostFunction* function = nullptr;  // owned by the runtime
  std::string run_id;
  Value::Array arguments;
  std::shared_ptr<Gate> gate;
  Future<Result<Value>> future;        // of a suspended call
  std::atomic<bool> abandoned{false};  // nothing waits for the result any more
};

// Calls the function; waits if it suspends. cancelled: with the token's reason; a late result is dropped.
Async<Value> perform(std::shared_ptr<CallState> call, CancelToken token);

}  // namespace rille::capi

struct rille_call {
  std::shared_ptr<rille::capi::CallState> state;
  std::optional<rille::Result<rille::Value>> outcome;
  bool suspended = false;
  std::vector<std::string> texts;  // JSON of the arguments that were requested

  void finish(rille::Result<rille::Value> result) {
    if (!suspended && !outcome) outcome.emplace(std::move(result));
  }
};

struct rille_completion {
  std::shared_ptr<rille::capi::CallState> state;
};
