// One call of a host function, from the script's arguments to its result. Loop thread only, but for `abandoned` and
// `gate`.
#pragma once

#include "bindings/c/internal.hpp"

namespace rille::capi {

struct CallState {
  explicit CallState(Loop& loop) : future(loop) {}
  const HostFunction* function = nullptr;  // of the runtime
  std::string run_id;
  Value::Array arguments;
  std::shared_ptr<Gate> gate;
  Future<Result<Value>> future;        // of a suspended call
  std::atomic<bool> abandoned{false};  // nobody waits for it any more
};

// Calls the function; waits when it suspends. cancelled: with the token's reason, and the late result is dropped.
Async<Value> perform(std::shared_ptr<CallState> call, CancelToken token);

}  // namespace rille::capi

struct rille_call {
  std::shared_ptr<rille::capi::CallState> state;
  std::optional<rille::Result<rille::Value>> outcome;
  bool suspended = false;
  std::vector<std::string> texts;  // JSON of the arguments, as far as asked for

  void finish(rille::Result<rille::Value> result) {
    if (!suspended && !outcome) outcome.emplace(std::move(result));
  }
};

struct rille_completion {
  std::shared_ptr<rille::capi::CallState> state;
};
