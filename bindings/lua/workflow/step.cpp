// The primitives of rille.step. The body runs in Lua (flow.cpp) between step_enter and step_leave. The body's
// captured variables are compared before and after: a finished step does not run again on resume, so a change to a
// captured variable would be lost. The body receives the ticket as its second argument.
#include "bindings/lua/workflow/step.hpp"

#include <fmt/format.h>

#include <cmath>

namespace rille::lua {

namespace {

constexpr int crashes_max_default = 5;

using Ticket = StepObject;

engine::RetryPolicy read_retry(lua_State* L, int options) {
  engine::RetryPolicy policy;
  if (!lua_istable(L, options)) return policy;
  lua_getfield(L, options, "retry");
  policy.counts_crashes = !lua_isnil(L, -1);
  int retry = lua_gettop(L);
  if (lua_isnumber(L, retry)) {
    std::int64_t n = check_integer(L, retry, "retry");
    if (n < 1 || n > 1000) raise_invalid(L, fmt::format("retry = {}: expected 1 to 1000 attempts", n));
    policy.attempts_max = static_cast<int>(n);
    policy.any_error = true;
  } else if (!lua_isnil(L, retry)) {
    check_options(L, retry, "retry",
                  {"attempts", "initial", "factor", "cap", "only_retryable", "max_elapsed", "on_exhausted"});
    policy.any_error = !option_bool(L, retry, "only_retryable", false);
    if (auto n = option_number(L, retry, "attempts")) {
      if (*n < 1 || *n > 1000 || *n != std::floor(*n))
        raise_invalid(L, fmt::format("attempts = {}: expected 1 to 1000", *n));
      policy.attempts_max = static_cast<int>(*n);
    }
    if (auto ms = option_duration_ms(L, retry, "initial")) policy.initial_ms = *ms;
    if (auto ms = option_duration_ms(L, retry, "cap")) policy.cap_ms = *ms;
    policy.elapsed_ms_max = option_duration_ms(L, retry, "max_elapsed").value_or(0);
    std::string after = option_text(L, retry, "on_exhausted").value_or("error");
    if (after != "error" && after != "pause")
      raise_invalid(L, fmt::format("on_exhausted = '{}': expected 'error' or 'pause'", after));
    policy.pauses = after == "pause";
    if (auto f = option_number(L, retry, "factor")) {
      if (!(*f >= 1 && *f <= 100)) raise_invalid(L, fmt::format("factor = {}: expected 1 to 100", *f));
      policy.factor = *f;
    }
  }
  lua_pop(L, 1);
  return policy;
}

std::int64_t read_limit(lua_State* L, int options, const char* key) {
  std::optional<std::int64_t> ms = option_duration_ms(L, options, key);
  if (ms && *ms <= 0) raise_invalid(L, fmt::format("{} = {} ms: expected a duration above zero", key, *ms));
  return ms.value_or(0);
}

engine::StepOptions read_step_options(lua_State* L, int options, const std::string& name) {
  check_options(L, options, "rille.step",
                {"retry", "args", "effect", "probe", "db", "crashes_max", "timeout", "total_timeout",
                 "heartbeat_timeout", "sim"});
  engine::StepOptions out;
  out.retry = read_retry(L, options);
  if (!lua_istable(L, options)) return out;
  std::string effect = option_text(L, options, "effect").value_or("idempotent");
  if (effect == "pure") out.effect = engine::Effect::pure;
  else if (effect == "once") out.effect = engine::Effect::once;
  // the effect "tx" counts as repeatable: its transaction can run again until it commits
  else if (effect != "idempotent" && effect != "tx")
    raise_invalid(L, fmt::format("effect = '{}': expected 'idempotent', 'pure', 'once' or 'tx'", effect));
  lua_getfield(L, options, "retry");
  if (out.effect == engine::Effect::once && !lua_isnil(L, -1))
    raise_invalid(
        L, fmt::format("step '{}' has effect = 'once', which is never tried again, and also the option retry", name),
        "use effect = 'idempotent' if the step may be repeated");
  lua_getfield(L, options, "probe");
  if (!lua_isnil(L, -1)) {
    if (out.effect != engine::Effect::once)
      raise_invalid(L, fmt::format("step '{}' has the option probe, which is used only with effect = 'once'", name));
    check_function(L, lua_gettop(L), "probe");
    out.probes = true;
  }
  lua_pop(L, 2);
  if (out.retry.counts_crashes && out.effect == engine::Effect::idempotent) out.crashes_max = crashes_max_default;
  if (out.probes) out.crashes_max = crashes_max_default;
  if (auto n = option_number(L, options, "crashes_max")) {
    if (!(*n >= 0 && *n <= 1000) || *n != std::floor(*n))
      raise_invalid(L, fmt::format("crashes_max = {}: expected 0 to 1000", *n));
    if (out.effect == engine::Effect::pure)
      raise_invalid(
          L, fmt::format(
                 "step '{}' has crashes_max, which cannot be used with effect = 'pure': its crashes are not recorded",
                 name));
    out.crashes_max = static_cast<int>(*n);
  }
  out.timeout_ms = read_limit(L, options, "timeout");
  out.total_timeout_ms = read_limit(L, options, "total_timeout");
  out.heartbeat_timeout_ms = read_limit(L, options, "heartbeat_timeout");
  return out;
}

engine::StepTicket copy(const engine::StepTicket& t) {
  engine::StepTicket mine;
  mine.key = t.key;
  mine.attempt = t.attempt;
  mine.entry = t.entry;
  return mine;
}

// Returns the declared result that replaces the body in a rehearsal. Null: the body runs, as it does for repeatable
// effects.
Result<Value> stand_in(const Verb& v, const std::string& name, Value declared, engine::Effect effect) {
  Rehearsal kind = v.host.options().rehearsal;
  if (kind == Rehearsal::no) return Value();
  if (!declared.is_null() || effect != engine::Effect::once) return declared;
  if (kind == Rehearsal::plan) return Value(Value::Object{});
  return make_error(ErrorKind::invalid,
                    fmt::format("step '{}' has effect = 'once', so a simulation must not execute it", name),
                    "give the simulation a result: sim = { duration = \"1m\", result = 1 }");
}

// step_begin(name, options, fn) -> ticket, true, value if the step is recorded; else ticket, false, attempt, probe,
// tx, sim
Result<int> step_begin(lua_State* L) {
  Verb v = begin_verb(L, "step");
  engine::Operation op;
  op.kind = "step";
  op.name = check_name(L, 1, "step");
  op.source = v.source;
  check_function(L, 3, "rille.step");
  if (lua_istable(L, 2)) {
    lua_getfield(L, 2, "args");
    RILLE_TRY(op.args, to_value(L, -1, "args"));
    lua_pop(L, 1);
  }
  std::string name = op.name;
  engine::StepOptions options = read_step_options(L, 2, name);
  engine::Run* run = &v.run;
  bool limited = options.limited();
  std::string database = read_database(L, 2, name);
  RILLE_TRY(Value declared, read_sim(L, 2, fmt::format("rille.step '{}'", name), false));
  RILLE_TRY(Value sim, stand_in(v, name, std::move(declared), options.effect));
  bool rehearsed = v.host.options().rehearsal != Rehearsal::no;
  if (!database.empty()) {
    Value args = std::move(op.args);
    op.args = Value();
    op.args.set("args", std::move(args)).set("db", database);
  }
  auto push_ticket = [name, run, limited, database, sim, rehearsed](lua_State* l, engine::StepTicket ticket) {
    std::optional<Result<Value>> recorded = std::move(ticket.recorded);
    int attempt = ticket.attempt;
    bool probe = ticket.probe;
    push_object(l,
                Ticket{std::move(ticket), name, run->id(), limited, false, Random(), {}, database, nullptr, rehearsed});
    lua_pushboolean(l, recorded.has_value());
    if (!recorded) {
      push(l, attempt);
      push(l, probe);
      push(l, !database.empty());
      push_value(l, sim);
      return 6;
    }
    if (*recorded) {
      push_value(l, **recorded);
    } else {
      // A failure recorded in an earlier process is raised again unchanged.
      push_error(l, recorded->error());
      lua_pushboolean(l, 1);
      return 4;
    }
    return 3;
  };
  return await(L, v.run.step_begin(v.id, std::move(op), options), push_ticket, Waits::engine);
}

int step_enter(lua_State* L) {
  Verb v = begin_verb(L, "step");
  Ticket& t = check_object<Ticket>(L, 1, "step");
  t.before = Captured::of(L, 2);
  t.outer = v.fiber.random;
  const std::string attempt = t.ticket.key + "#" + std::to_string(t.ticket.attempt);
  v.fiber.random.reseed(engine::mix_seed(v.run.seed(v.id), attempt));
  v.fiber.step = t.name;
  hold_coroutine(L, v.fiber, 1);
  if (t.limited) v.host.look_later(v.run.look_at_clock());
  return 0;
}

// step_leave(ticket, fn, ok) -> nothing, or an error if the body changed a captured variable.
int step_leave(lua_State* L) {
  Verb v = begin_verb(L, "step", Verbs::anywhere);
  Ticket& t = check_object<Ticket>(L, 1, "step");
  v.fiber.step.clear();
  hold_coroutine(L, v.fiber, -1);
  v.fiber.random = t.outer;
  if (!lua_toboolean(L, 3)) return 0;
  std::string changed = Captured::of(L, 2).difference(t.before);
  if (changed.empty()) return 0;
  push_error(L, make_error(ErrorKind::state,
                           fmt::format("the body of step '{}' changes {}, which is declared outside of it ({})", t.name,
                                       changed, std::string(v.source)),
                           "a finished step does not run again on resume, so the change would be lost: return "
                           "the value instead"));
  return 1;
}

// Pushes the outcome of an attempt: true, attempt (try again) | false, value | false, error, true
auto outcome_of(Ticket* ticket) {
  return [ticket](lua_State* l, engine::StepOutcome outcome) {
    ticket->ticket.attempt = outcome.attempt;
    ticket->ticket.last = std::move(outcome.last);
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
  };
}

// step_end(ticket, ok, value, number of results) -> what outcome_of pushes
Result<int> step_end(lua_State* L) {
  Verb v = begin_verb(L, "step");
  Ticket& t = check_object<Ticket>(L, 1, "step");
  Result<Value> body = Value();
  if (lua_toboolean(L, 2)) {
    body = to_value(L, 3, fmt::format("the result of step '{}'", t.name));
    if (lua_tointeger(L, 4) > 1)
      body = make_error(ErrorKind::invalid,
                        fmt::format("step '{}' returns {} values, but one is recorded", t.name, lua_tointeger(L, 4)),
                        "return one table: return { a, b }");
  } else {
    body = caught_error(L, 3);
  }
  if (t.transaction) body = end_transaction(t, std::move(body), v.run.loop().clock().wall_us());
  return await(L, v.run.step_end(v.id, copy(t.ticket), std::move(body)), outcome_of(&t), Waits::cleanup);
}

// step_probed(ticket, ok, verdict, value) -> what outcome_of pushes
Result<int> step_probed(lua_State* L) {
  Verb v = begin_verb(L, "step");
  Ticket& t = check_object<Ticket>(L, 1, "step");
  lua_settop(L, 4);
  Result<engine::ProbeAnswer> answer = engine::ProbeAnswer();
  std::string_view verdict = lua_type(L, 3) == LUA_TSTRING ? lua_tostring(L, 3) : "";
  if (!lua_toboolean(L, 2)) {
    answer = caught_error(L, 3);
  } else if (verdict == "done") {
    Result<Value> value = to_value(L, 4, fmt::format("the result of step '{}'", t.name));
    if (value) answer->done = std::move(*value);
    else answer = value.error();
  } else if (verdict != "absent") {
    answer =
        make_error(ErrorKind::invalid,
                   fmt::format("the probe of step '{}' returned {}: expected \"done\" and the result, or \"absent\"",
                               t.name, describe(L, 3)));
  }
  return await(L, v.run.step_probed(v.id, copy(t.ticket), std::move(answer)), outcome_of(&t), Waits::cleanup);
}

// Returns the engine's ticket of the step that the Lua object `t` represents.
engine::StepTicket ticket_of(lua_State* L, const Verb& v, const Ticket& t) {
  if (!t.plain) return copy(t.ticket);
  if (!v.fiber.plain.runs)
    raise(L, make_error(ErrorKind::state, "this step has ended",
                        "use the step's argument ctx only inside the step's body"));
  return v.run.plain_ticket(v.id);
}

// ctx:heartbeat(value): reports the progress of the step's body
Result<int> heartbeat(lua_State* L) {
  Verb v = begin_verb(L, "step", Verbs::anywhere);
  Ticket& t = check_object<Ticket>(L, 1, "step");
  RILLE_TRY(Value progress, to_value(L, 2, fmt::format("the heartbeat of step '{}'", t.name)));
  RILLE_CHECK(v.run.step_heartbeat(v.id, ticket_of(L, v, t), std::move(progress)));
  return 0;
}

bool step_field(lua_State* L, std::string_view key) {
  const Ticket& t = check_object<Ticket>(L, 1, "step");
  if (key == "attempt") push(L, t.ticket.attempt);
  else if (key == "token" && !t.plain) push(L, engine::step_token(t.run, t.ticket.key));
  else if (key == "token") {
    Verb v = begin_verb(L, "step", Verbs::anywhere);
    push(L, engine::step_token(v.run.id(), ticket_of(L, v, t).key));
  } else if (key == "last") push_value(L, t.ticket.last);
  else if (key == "db") push_database(L, t);
  else return false;
  return true;
}

}  // namespace

void add_step_functions(lua_State* L) {
  define_class<Ticket>(L, {.name = "Step",
                           .methods = {{"heartbeat", bind<heartbeat>}},
                           .field = step_field,
                           .fields = {"attempt", "token", "last", "db"}});
  set_functions(L, {{"step_enter", bind<step_enter>}, {"step_leave", bind<step_leave>}});
  set_async(L, "step_begin", bind<step_begin>);
  set_async(L, "step_probed", bind<step_probed>);
  set_async(L, "step_end", bind<step_end>);
  add_plain_step_functions(L);
  add_tx_functions(L);
}

}  // namespace rille::lua
