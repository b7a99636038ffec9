#include "bindings/c/call.hpp"

#include <fmt/format.h>

#include <cmath>

namespace rille::capi {

Async<Value> perform(std::shared_ptr<CallState> call, CancelToken token) {
  // Marks the call as abandoned, also if this coroutine is destroyed while it waits.
  struct Abandon {
    CallState& call;
    ~Abandon() { call.abandoned = true; }
  } at_end{*call};
  if (token.cancelled()) co_return token.reason();
  rille_call handle;
  handle.state = call;
  call->function->function(&handle, call->function->payload);
  if (handle.outcome) co_return std::move(*handle.outcome);
  if (!handle.suspended) co_return Value();
  auto registration = token.on_cancel([call](const Error& why) {
    call->abandoned = true;
    call->future.set(why);
  });
  co_return co_await call->future;
}

namespace {

Error wrong_argument(const rille_call& call, std::size_t index, const char* expected) {
  const auto& arguments = call.state->arguments;
  std::string got = index < arguments.size() ? arguments[index].to_json() : "nothing";
  if (got.size() > 60) got = got.substr(0, 57) + "...";
  return make_error(ErrorKind::invalid, fmt::format("{}: argument {}: expected {}, got {}",
                                                    call.state->function->full_name, index + 1, expected, got));
}

const Value& argument(const rille_call& call, std::size_t index) {
  static const Value none;
  return index < call.state->arguments.size() ? call.state->arguments[index] : none;
}

// Passes the result to the loop, if it still exists, and frees the completion.
void complete(rille_completion* completion, Result<Value> result) noexcept {
  std::unique_ptr<rille_completion> owned(completion);
  std::shared_ptr<Gate> gate = owned->state->gate;
  std::lock_guard lock(gate->mutex);
  if (!gate->loop) return;
  try {
    gate->loop->post_from_thread([state = owned->state, result = std::move(result)] { state->future.set(result); });
  } catch (const std::bad_alloc&) {
    // Out of memory: the result cannot be delivered, so the call stays suspended and can still be cancelled.
  }
}

template <class F>
void answer(rille_call* call, F make) noexcept {
  if (!call) return;
  try {
    call->finish(make());
  } catch (const std::exception& e) { call->finish(take(give_exception(e))); }
}

Result<Value> parse(const rille_call& call, const char* json, std::size_t length) {
  Result<Value> value = Value::from_json(std::string_view(json ? json : "null", json ? length : 4));
  if (!value) return std::move(value.error()).with_operation(call.state->function->full_name);
  return value;
}

}  // namespace
}  // namespace rille::capi

using namespace rille;
using namespace rille::capi;

const char* rille_call_name(const rille_call* call) { return call ? call->state->function->full_name.c_str() : ""; }
const char* rille_call_run_id(const rille_call* call) { return call ? call->state->run_id.c_str() : ""; }
size_t rille_call_count(const rille_call* call) { return call ? call->state->arguments.size() : 0; }

const char* rille_call_json(rille_call* call, size_t index, size_t* length) {
  const char* text = "null";
  std::size_t size = 4;
  try {
    if (call && index < call->state->arguments.size()) {
      if (call->texts.empty()) call->texts.resize(call->state->arguments.size());
      std::string& made = call->texts[index];
      if (made.empty()) made = call->state->arguments[index].to_json();
      text = made.c_str();
      size = made.size();
    }
  } catch (const std::bad_alloc&) {
    // the script gets the error, whatever the host function returns later
    call->finish(take(give_exception(std::bad_alloc())));
  }
  if (length) *length = size;
  return text;
}

rille_error* rille_call_number(const rille_call* call, size_t index, double* value) {
  return guarded([&]() -> Result<> {
    if (!call || !value) return null_argument("rille_call_number", call ? "value" : "call");
    const double* n = argument(*call, index).as_number();
    if (!n) return wrong_argument(*call, index, "a number");
    *value = *n;
    return {};
  });
}

rille_error* rille_call_integer(const rille_call* call, size_t index, int64_t* value) {
  return guarded([&]() -> Result<> {
    if (!call || !value) return null_argument("rille_call_integer", call ? "value" : "call");
    const double* n = argument(*call, index).as_number();
    if (!n || std::floor(*n) != *n || std::fabs(*n) > 9007199254740992.0)
      return wrong_argument(*call, index, "an integer");
    *value = static_cast<int64_t>(*n);
    return {};
  });
}

rille_error* rille_call_bool(const rille_call* call, size_t index, int* value) {
  return guarded([&]() -> Result<> {
    if (!call || !value) return null_argument("rille_call_bool", call ? "value" : "call");
    const bool* b = argument(*call, index).as_bool();
    if (!b) return wrong_argument(*call, index, "true or false");
    *value = *b;
    return {};
  });
}

rille_error* rille_call_text(const rille_call* call, size_t index, const char** text, size_t* length) {
  return guarded([&]() -> Result<> {
    if (!call || !text) return null_argument("rille_call_text", call ? "text" : "call");
    const std::string* s = argument(*call, index).as_string();
    if (!s) return wrong_argument(*call, index, "a string");
    *text = s->c_str();
    if (length) *length = s->size();
    return {};
  });
}

void rille_call_return_json(rille_call* call, const char* json, size_t length) {
  answer(call, [&] { return parse(*call, json, length); });
}
void rille_call_return_number(rille_call* call, double value) {
  answer(call, [&] { return Value(value); });
}
void rille_call_return_bool(rille_call* call, int value) {
  answer(call, [&] { return Value(value != 0); });
}
void rille_call_return_text(rille_call* call, const char* text, size_t length) {
  answer(call, [&] { return Value(std::string(text ? text : "", text ? length : 0)); });
}
void rille_call_fail(rille_call* call, rille_error* error) {
  if (call) call->finish(take(error));
  else rille_error_free(error);
}

rille_completion* rille_call_suspend(rille_call* call) {
  if (!call || call->suspended || call->outcome) return nullptr;
  auto* completion = new (std::nothrow) rille_completion;
  if (!completion) {
    call->finish(take(give_exception(std::bad_alloc())));
    return nullptr;
  }
  completion->state = call->state;
  call->suspended = true;
  return completion;
}

void rille_completion_resolve(rille_completion* completion, const char* json, size_t length) {
  if (!completion) return;
  Result<Value> value = Value();
  try {
    if (json) value = Value::from_json(std::string_view(json, length));
  } catch (const std::exception& e) { value = take(give_exception(e)); }
  complete(completion, std::move(value));
}

void rille_completion_reject(rille_completion* completion, rille_error* error) {
  if (completion) complete(completion, take(error));
  else rille_error_free(error);
}

int rille_completion_abandoned(const rille_completion* completion) {
  return !completion || completion->state->abandoned.load();
}
