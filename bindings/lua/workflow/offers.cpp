// rille.offers { gpu = "A100" }: offers, cheapest first; rille.price_history { gpu = "A100" }: past prices;
// rille.quotas { provider = "aws" }: the account's quotas. All three return lists that print as tables.
#include "bindings/lua/workflow/verb.hpp"

namespace rille::lua {

namespace {

Result<Value> read_query(lua_State* L, const char* what) {
  Value query{Value::Object{}};
  if (lua_isnoneornil(L, 1)) return query;
  check_table(L, 1, what);
  RILLE_TRY(query, to_value(L, 1, what));
  if (query.as_array() && query.as_array()->empty()) query = Value(Value::Object{});
  return query;
}

Result<int> offers(lua_State* L) {
  Verb v = begin_verb(L, "offers");
  RILLE_TRY(Value query, read_query(L, "rille.offers"));
  RILLE_CHECK(v.host.grants().choose_providers("rille.offers", query, false));
  return await(L, v.run.offers(v.id, std::move(query), v.source), push_list, Waits::engine);
}

Result<int> price_history(lua_State* L) {
  Verb v = begin_verb(L, "price_history");
  RILLE_TRY(Value query, read_query(L, "rille.price_history"));
  RILLE_CHECK(v.host.grants().choose_providers("rille.price_history", query, false));
  return await(L, v.run.price_history(v.id, std::move(query), v.source), push_list, Waits::engine);
}

Result<int> quotas(lua_State* L) {
  Verb v = begin_verb(L, "quotas");
  RILLE_TRY(Value query, read_query(L, "rille.quotas"));
  RILLE_CHECK(v.host.grants().choose_providers("rille.quotas", query, false));
  return await(L, v.run.quotas(v.id, std::move(query), v.source), push_list, Waits::engine);
}

}  // namespace

int open_offers(lua_State* L) {
  lua_settop(L, 1);
  lua_newtable(L);
  set_async(L, "offers", bind<offers>);
  set_async(L, "price_history", bind<price_history>);
  set_async(L, "quotas", bind<quotas>);
  add_words(L, 1);
  return 0;
}

}  // namespace rille::lua
