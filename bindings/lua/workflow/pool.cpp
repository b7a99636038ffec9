// Pool primitives; flow.cpp defines the verb rille.pool.
#include <fmt/format.h>

#include <cmath>

#include "bindings/lua/workflow/verb.hpp"

namespace rille::lua {

namespace {

// pool_enter(name, {slots=, rate=, per=}) -> permit
int pool_enter(lua_State* L) {
  Verb v = begin_verb(L, "pool");
  engine::PoolSpec pool;
  pool.name = check_name(L, 1, "pool");
  check_table(L, 2, "rille.pool");
  check_options(L, 2, "rille.pool", {"slots", "rate", "per"});
  auto whole = [&](const char* name) -> std::int64_t {
    std::optional<double> n = option_number(L, 2, name);
    if (!n) return 0;
    if (!(*n >= 1 && *n <= 1e9) || *n != std::floor(*n))
      raise_invalid(L, fmt::format("rille.pool: {} = {}: expected a whole number from 1 on", name, *n));
    return static_cast<std::int64_t>(*n);
  };
  pool.slots = whole("slots");
  pool.rate = whole("rate");
  std::optional<std::int64_t> per_ms = option_duration_ms(L, 2, "per");
  if (per_ms && !pool.rate)
    raise_invalid(L, "rille.pool: the option per needs the option rate", "rate = 10, per = \"1s\"");
  if (!pool.slots && !pool.rate)
    raise_invalid(L, "rille.pool: neither slots nor rate is given", "slots = 4, or rate = 10, per = \"1s\"");
  pool.per_ms = pool.rate ? per_ms.value_or(1000) : 0;
  if (pool.rate && pool.per_ms <= 0) raise_invalid(L, "rille.pool: per must be a duration above zero");
  return await(
      L, v.run.pool_enter(v.id, std::move(pool), v.source),
      [](lua_State* l, std::string permit) {
        push(l, permit);
        return 1;
      },
      Waits::engine);
}

int pool_leave(lua_State* L) {
  Verb v = begin_verb(L, "pool", Verbs::anywhere);
  v.run.pool_leave(v.id, check_name(L, 1, "pool"), std::string(check_text(L, 2, "permit")));
  return 0;
}

}  // namespace

void add_pool_functions(lua_State* L) {
  set_async(L, "pool_enter", bind<pool_enter>);
  set_functions(L, {{"pool_leave", bind<pool_leave>}});
}

}  // namespace rille::lua
