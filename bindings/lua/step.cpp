// The primitives of rille.step. The body runs in Lua (flow.cpp) between step_enter and step_leave; what it captured is
// compared before and after, since a finished step does not run again on resume and the change would be lost.
#include <fmt/format.h>

#include <cmath>

#include "bindings/lua/step.hpp"

namespace rille::lua {

namespace {

using Ticket = StepObject;

engine::RetryPolicy read_retry(lua_State* L, int options) {
  engine::RetryPolicy policy;
  if (!lua_istable(L, options)) return policy;
  lua_getfield(L, options, "retry");
  int retry = lua_gettop(L);
  if (lua_isnumber(L, retry)) {
    std::int64_t n = check_integer(L, retry, "retry");
    if (n < 1 || n > 1000) raise_invalid(L, fmt::format("retry = {}: expected 1 to 1000 attempts", n));
    policy.attempts_max = static_cast<int>(n);
    policy.any_error = true;
  } else if (!lua_isnil(L, retry)) {
    check_options(L, retry, "retry", {"attempts", "initial", "factor", "cap", "only_retryable"});
    policy.any_error = !option_bool(L, retry, "only_retryable", false);
    if (auto n = option_number(L, retry, "attempts")) {
      if (*n < 1 || *n > 1000 || *n != std::floor(*n))
        raise_invalid(L, fmt::format("attempts = {}: expected 1 to 1000", *n));
      policy.attempts_max = static_cast<int>(*n);
    }
    if (auto ms = option_duration_ms(L, retry, "initial")) policy.initial_ms = *ms;
    if (auto ms = option_duration_ms(L, retry, "cap")) policy.cap_ms = *ms;
    if (auto f = option_number(L, retry, "factor")) {
      if (!(*f >= 1 && *f <= 100)) raise_invalid(L, fmt::format("factor = {}: expected 1 to 100", *f));
      policy.factor = *f;
    }
  }
  lua_pop(L, 1);
  return policy;
}

// (name, options, fn) -> ticket, recorded, value
Result<int> step_begin(lua_State* L) {
  Verb v = begin_verb(L, "step");
  engine::Operation op;
  op.kind = "step";
  op.name = check_name(L, 1, "step");
  op.source = v.source;
  check_options(L, 2, "rille.step", {"retry", "args"});
  check_function(L, 3, "rille.step");
  if (lua_istable(L, 2)) {
    lua_getfield(L, 2, "args");
    RILLE_TRY(op.args, to_value(L, -1, "args"));
    lua_pop(L, 1);
  }
  engine::RetryPolicy retry = read_retry(L, 2);
  std::string name = op.name;
  return await(L, v.run.step_begin(v.id, std::move(op), retry), [name](lua_State* l, engine::StepTicket ticket) {
    std::optional<Result<Value>> recorded = std::move(ticket.recorded);
    int attempt = ticket.attempt;
    push_object(l, Ticket{std::move(ticket), name, Random(), {}});
    lua_pushboolean(l, recorded.has_value());
    if (!recorded) {
      push(l, attempt);
    } else if (*recorded) {
      push_value(l, **recorded);
    } else {
      // A recorded failure is raised again as it was.
      push_error(l, recorded->error());
      lua_pushboolean(l, 1);
      return 4;
    }
    return 3;
  }, Waits::engine);
}

int step_enter(lua_State* L) {
  Verb v = begin_verb(L, "step");
  Ticket& t = check_object<Ticket>(L, 1, "step");
  t.before = Captured::of(L, 2);
  t.outer = v.fiber.random;
  std::uint64_t seed = v.run.seed(v.id);
  for (char c : t.ticket.key + "#" + std::to_string(t.ticket.attempt))
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  v.fiber.random.reseed(seed);
  v.fiber.step = t.name;
  return 0;
}

// (ticket, fn, ok) -> nothing, or the error that a change of captured variables is.
int step_leave(lua_State* L) {
  Verb v = begin_verb(L, "step", Verbs::anywhere);
  Ticket& t = check_object<Ticket>(L, 1, "step");
  v.fiber.step.clear();
  v.fiber.random = t.outer;
  v.host.caught();
  if (!lua_toboolean(L, 3)) return 0;
  std::string changed = Captured::of(L, 2).difference(t.before);
  if (changed.empty()) return 0;
  push_error(L,
             make_error(ErrorKind::state,
                        fmt::format("the body of step '{}' changes {}, which is declared outside of it ({})",
                                    t.name, changed, std::string(v.source)),
                        "a finished step does not run again on resume, so the change would be lost: return "
                        "the value instead"));
  return 1;
}

// (ticket, ok, value, count) -> again, attempt | false, value
Result<int> step_end(lua_State* L) {
  Verb v = begin_verb(L, "step");
  Ticket& t = check_object<Ticket>(L, 1, "step");
  Result<Value> body = Value();
  if (lua_toboolean(L, 2)) {
    body = to_value(L, 3, fmt::format("the result of step '{}'", t.name));
    if (lua_tointeger(L, 4) > 1)
      body = make_error(
          ErrorKind::invalid,
          fmt::format("step '{}' returns {} values, but one is recorded", t.name, lua_tointeger(L, 4)),
          "return one table: return { a, b }");
  } else {
    body = caught_error(L, 3);
  }
  Ticket* ticket = &t;
  engine::StepTicket mine;
  mine.key = t.ticket.key;
  mine.attempt = t.ticket.attempt;
  mine.entry = t.ticket.entry;
  return await(
      L, v.run.step_end(v.id, std::move(mine), std::move(body)),
      [ticket](lua_State* l, engine::StepOutcome outcome) {
        ticket->ticket.attempt = outcome.attempt;
        lua_pushboolean(l, outcome.again);
        if (outcome.again) {
          push(l, outcome.attempt);
          return 2;
        }
        if (outcome.result) {
          push_value(l, *outcome.result);
          return 2;
        }
        push_error(l, outcome.result.error());
        lua_pushboolean(l, 1);
        return 3;
      },
      Waits::cleanup);
}

}  // namespace

void add_step_functions(lua_State* L) {
  define_class<Ticket>(L, {.name = "Step"});
  set_functions(L, {{"step_enter", bind<step_enter>}, {"step_leave", bind<step_leave>}});
  set_async(L, "step_begin", bind<step_begin>);
  set_async(L, "step_end", bind<step_end>);
  add_plain_step_functions(L);
}

}  // namespace rille::lua
