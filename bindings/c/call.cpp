#include "bindings/c/call.hpp"

#include <fmt/format.h>

#include <cmath>

#include "bindings/host/await.hpp"

namespace rille::capi {

namespace {

// Marks the call as abandoned, even if the waiting coroutine is destroyed.
struct Abandon {
  CallState& call;
  ~Abandon() { call.abandoned = true; }
};

}  // namespace

Bridge::Waiting::~Waiting() {
  if (!begun_ && call_) call_->abandoned = true;
}

Async<Value> wait_for(std::shared_ptr<CallState> call, CancelToken token) {
  Abandon at_end{*call};
  auto registration = token.on_cancel([call](const Error& why) {
    call->abandoned = true;
    call->future.set(why);
  });
  RILLE_CO_TRY(call->answer, co_await call->future);
  if (!call->journaled || !call->answer.copied) co_return call->answer.value;
  co_return to_data(call->answer.copied->value, ValueName{"the result", 0, call->function->full_name});
}

Async<Value> perform(std::shared_ptr<CallState> call, CancelToken token) {
  Abandon at_end{*call};
  if (token.cancelled()) co_return token.reason();
  bool suspended = false;
  Result<Value> outcome = Value();
  {
    rille_call handle(call);
    call->function->function(&handle, call->function->payload);
    suspended = handle.has == rille_call::Has::suspended;
    if (handle.has == rille_call::Has::number) outcome = Value(handle.number);
    if (handle.has == rille_call::Has::boolean) outcome = Value(handle.boolean);
    if (handle.has == rille_call::Has::data) outcome = std::move(handle.more().data);
    if (handle.has == rille_call::Has::error) outcome = std::move(handle.more().error);
  }
  if (suspended) outcome = co_await wait_for(call, std::move(token));
  co_return outcome;
}

namespace {

// Shows an argument for error messages; a value that is not data is shown by its type.
std::string shown(const rille_call& call, std::size_t index) {
  if (index >= call.count) return "nothing";
  if (!call.L) return call.state->arguments[index].to_json();
  Result<Value> value = Value();
  lua_pushvalue(call.L, static_cast<int>(index) + 1);
  Result<> read = protect_here(call.L, 1, 0, [&](lua_State* L) { value = host::to_value(L, 2); });
  return read && value ? value->to_json() : host::describe(call.L, static_cast<int>(index) + 1);
}

Error wrong_argument(const rille_call& call, std::size_t index, const char* expected) {
  std::string got = shown(call, index);
  if (got.size() > 60) got = got.substr(0, 57) + "...";
  return make_error(ErrorKind::invalid, fmt::format("{}: argument {}: expected {}, got {}", call.function.full_name,
                                                    index + 1, expected, got));
}

const Value& argument(const rille_call& call, std::size_t index) {
  static const Value none;
  return index < call.count ? call.state->arguments[index] : none;
}

// The number at `index`; nullopt if the argument is not a number.
std::optional<double> number_at(const rille_call& call, std::size_t index) {
  if (!call.L) {
    const double* n = argument(call, index).as_number();
    return n ? std::optional<double>(*n) : std::nullopt;
  }
  const int at = static_cast<int>(index) + 1;
  if (index >= call.count || lua_type(call.L, at) != LUA_TNUMBER) return {};
  return lua_tonumber(call.L, at);
}

// Passes the result to the loop, if it still exists, and frees the completion.
void complete(rille_completion* completion, Result<Answer> result) noexcept {
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

// Sets the call's result to what `make` returns, a Result<Value>.
template <class F>
void answer(rille_call* call, F make) noexcept {
  if (!call || !call->open()) return;
  try {
    Result<Value> value = make();
    if (!value) return call->fail(std::move(value).error());
    if (!call->L) {
      call->more().data = std::move(*value);
      call->has = rille_call::Has::data;
      return;
    }
    Result<> pushed = protect_here(call->L, 0, 1, [&](lua_State* L) { host::push_value(L, *value); });
    if (!pushed) return call->fail(std::move(pushed).error());
    call->has = rille_call::Has::pushed;
  } catch (const std::exception& e) { call->fail(take(give_exception(e))); }
}

Result<Value> parse(const rille_call& call, const char* json, std::size_t length) {
  Result<Value> value = Value::from_json(std::string_view(json ? json : "null", json ? length : 4));
  if (!value) return std::move(value.error()).with_operation(call.function.full_name);
  return value;
}

Result<Value> argument_as_data(rille_call& call, std::size_t index) {
  if (!call.L) return call.state->arguments[index];
  Result<Value> value = Value();
  lua_pushvalue(call.L, static_cast<int>(index) + 1);
  RILLE_CHECK(protect_here(call.L, 1, 0, [&](lua_State* L) {
    value = host::to_value(L, 2, fmt::format("argument {} of {}", index + 1, call.function.full_name));
  }));
  return value;
}

Result<std::string> json_of(rille_call& call, const Value& value) {
  MemoryHeld held;
  RILLE_TRY(std::string text, counted_json(value, call.memory(), 1, held));
  call.more().held.push_back(std::move(held));
  return text;
}

}  // namespace
}  // namespace rille::capi

using namespace rille;
using namespace rille::capi;

const std::shared_ptr<MemoryUse>& rille_call::memory() const {
  return bridge ? bridge->host().options().memory : state->memory;
}

Loan& rille_call::lender() {
  if (!loan) loan = bridge ? bridge->new_loan() : std::make_unique<Loan>(state->memory);
  return *loan;
}

void rille_call::end_loan() {
  if (bridge) bridge->end(std::move(loan));
}

const char* rille_call_name(const rille_call* call) { return call ? call->function.full_name.c_str() : ""; }
const char* rille_call_run_id(const rille_call* call) {
  if (!call) return "";
  return call->L ? call->bridge->host().control().id().c_str() : call->state->run_id.c_str();
}
size_t rille_call_count(const rille_call* call) { return call ? call->count : 0; }

const char* rille_call_json(rille_call* call, size_t index, size_t* length) {
  const char* text = "null";
  std::size_t size = 4;
  try {
    if (call && index < call->count) {
      std::vector<std::string>& texts = call->more().texts;
      if (texts.empty()) texts.resize(call->count);
      std::string& made = texts[index];
      if (made.empty()) {
        Result<Value> value = argument_as_data(*call, index);
        // the script gets this error, whatever the host function returns later
        if (!value) call->fail(std::move(value).error());
        else if (Result<std::string> json = json_of(*call, *value)) made = std::move(*json);
        else call->fail(std::move(json).error());
        if (made.empty()) made = "null";
      }
      text = made.c_str();
      size = made.size();
    }
  } catch (const std::bad_alloc&) { call->fail(take(give_exception(std::bad_alloc()))); }
  if (length) *length = size;
  return text;
}

rille_error* rille_call_number(const rille_call* call, size_t index, double* value) {
  return guarded([&]() -> Result<> {
    if (!call || !value) return null_argument("rille_call_number", call ? "value" : "call");
    std::optional<double> n = number_at(*call, index);
    if (!n) return wrong_argument(*call, index, "a number");
    *value = *n;
    return {};
  });
}

rille_error* rille_call_integer(const rille_call* call, size_t index, int64_t* value) {
  return guarded([&]() -> Result<> {
    if (!call || !value) return null_argument("rille_call_integer", call ? "value" : "call");
    std::optional<double> n = number_at(*call, index);
    if (!n || std::floor(*n) != *n || std::fabs(*n) > integer_max) return wrong_argument(*call, index, "an integer");
    *value = static_cast<int64_t>(*n);
    return {};
  });
}

rille_error* rille_call_bool(const rille_call* call, size_t index, int* value) {
  return guarded([&]() -> Result<> {
    if (!call || !value) return null_argument("rille_call_bool", call ? "value" : "call");
    const int at = static_cast<int>(index) + 1;
    if (call->L && index < call->count && lua_type(call->L, at) == LUA_TBOOLEAN) {
      *value = lua_toboolean(call->L, at);
      return {};
    }
    const bool* b = call->L ? nullptr : argument(*call, index).as_bool();
    if (!b) return wrong_argument(*call, index, "true or false");
    *value = *b;
    return {};
  });
}

rille_error* rille_call_text(const rille_call* call, size_t index, const char** text, size_t* length) {
  return guarded([&]() -> Result<> {
    if (!call || !text) return null_argument("rille_call_text", call ? "text" : "call");
    const int at = static_cast<int>(index) + 1;
    if (call->L && index < call->count && lua_type(call->L, at) == LUA_TSTRING) {
      *text = lua_tolstring(call->L, at, length);
      return {};
    }
    const std::string* s = call->L ? nullptr : argument(*call, index).as_string();
    if (!s) return wrong_argument(*call, index, "a string");
    *text = s->c_str();
    if (length) *length = s->size();
    return {};
  });
}

rille_error* rille_call_value(rille_call* call, size_t index, rille_value* value) {
  return guarded([&]() -> Result<> {
    if (!call || !value) return null_argument("rille_call_value", call ? "value" : "call");
    *value = rille_value{};
    if (index >= call->count) return {};
    const int at = static_cast<int>(index) + 1;
    if (call->L && lua_type(call->L, at) == LUA_TNUMBER) {
      value->kind = RILLE_VALUE_NUMBER;
      value->as.number = lua_tonumber(call->L, at);
      return {};
    }
    const ValueName place{"argument", index + 1, call->function.full_name};
    Loan& loan = call->lender();
    if (!call->L) {
      RILLE_TRY(*value, lend_data(call->state->arguments[index], loan.arena, place));
      return {};
    }
    RILLE_TRY(*value, call->bridge->lend(call->L, at, loan, place));
    return {};
  });
}

void rille_call_return_json(rille_call* call, const char* json, size_t length) {
  answer(call, [&] { return parse(*call, json, length); });
}
void rille_call_return_number(rille_call* call, double value) {
  if (!call || !call->open()) return;
  call->has = rille_call::Has::number;
  call->number = value;
}
void rille_call_return_bool(rille_call* call, int value) {
  if (!call || !call->open()) return;
  call->has = rille_call::Has::boolean;
  call->boolean = value != 0;
}
void rille_call_return_text(rille_call* call, const char* text, size_t length) {
  if (!call) return;
  if (!call->L) return answer(call, [&] { return Value(std::string(text ? text : "", text ? length : 0)); });
  rille_value value{};
  value.kind = RILLE_VALUE_BYTES;
  value.as.bytes = {text ? text : "", text ? length : 0};
  rille_call_return_value(call, &value);
}

void rille_call_return_value(rille_call* call, const rille_value* value) {
  if (!call || !call->open()) return;
  static const rille_value nil{};
  const rille_value& v = value ? *value : nil;
  if (v.kind == RILLE_VALUE_NUMBER) return rille_call_return_number(call, v.as.number);
  if (!call->L) return answer(call, [&] { return to_data(v, ValueName{"the result", 0, call->function.full_name}); });
  try {
    Result<> pushed = call->bridge->push_protected(call->L, v, ValueName{"the result", 0, {}});
    if (!pushed) return call->fail(std::move(pushed.error()).with_operation(call->function.full_name));
    call->has = rille_call::Has::pushed;
  } catch (const std::exception& e) { call->fail(take(give_exception(e))); }
}

void rille_call_fail(rille_call* call, rille_error* error) {
  Error taken = take(error);
  if (call) call->fail(std::move(taken));
}

rille_completion* rille_call_suspend(rille_call* call) {
  if (!call || !call->open()) return nullptr;
  try {
    if (call->L) {
      Result<> waits = host::may_wait(call->L);
      if (!waits) {
        call->fail(std::move(waits).error());
        return nullptr;
      }
      Bridge& bridge = *call->bridge;
      call->state = std::make_shared<CallState>(bridge.host().loop());
      call->state->function = &call->function;
      call->state->gate = bridge.runtime().gate;
      call->state->holdings = bridge.runtime().holdings;
      call->state->run_id = bridge.host().control().id();
    }
    auto completion = std::make_unique<rille_completion>();
    completion->state = call->state;
    call->has = rille_call::Has::suspended;
    return completion.release();
  } catch (const std::exception& e) {
    call->fail(take(give_exception(e)));
    return nullptr;
  }
}

void rille_completion_resolve(rille_completion* completion, const char* json, size_t length) {
  if (!completion) return;
  Result<Answer> result = Answer();
  try {
    if (json) {
      Result<Value> value = Value::from_json(std::string_view(json, length));
      if (value) result->value = std::move(*value);
      else result = std::move(value).error();
    }
  } catch (const std::exception& e) { result = take(give_exception(e)); }
  complete(completion, std::move(result));
}

void rille_completion_resolve_value(rille_completion* completion, const rille_value* value) {
  if (!completion) return;
  Result<Answer> result = Answer();
  try {
    if (value) {
      Result<std::shared_ptr<Copied>> made = copy(*value, completion->state->holdings, ValueName{"the result", 0, {}});
      if (made) result->copied = std::move(*made);
      else result = std::move(made).error();
    }
  } catch (const std::exception& e) { result = take(give_exception(e)); }
  complete(completion, std::move(result));
}

void rille_completion_reject(rille_completion* completion, rille_error* error) {
  if (completion) complete(completion, take(error));
  else rille_error_free(error);
}

int rille_completion_abandoned(const rille_completion* completion) {
  return !completion || completion->state->abandoned.load();
}
