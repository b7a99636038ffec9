// rille.offers { gpu = "A100" }: what there is to rent, cheapest first, as a list that prints as a table.
#include "bindings/lua/verb.hpp"

namespace rille::lua {

namespace {

Result<int> offers(lua_State* L) {
  Verb v = begin_verb(L, "offers");
  Value query{Value::Object{}};
  if (!lua_isnoneornil(L, 1)) {
    check_table(L, 1, "rille.offers");
    RILLE_TRY(query, to_value(L, 1, "rille.offers"));
    if (query.as_array() && query.as_array()->empty()) query = Value(Value::Object{});
  }
  return await(L, v.run.offers(v.id, std::move(query), v.source), [](lua_State* l, Value list) {
    push_rille_core(l);
    lua_getfield(l, -1, "list_view");
    push_value(l, list);
    lua_call(l, 1, 1);
    return 1;
  }, Waits::engine);
}

}  // namespace

int open_offers(lua_State* L) {
  lua_settop(L, 1);
  lua_newtable(L);
  set_async(L, "offers", bind<offers>);
  add_words(L, 1);
  return 0;
}

}  // namespace rille::lua
