// rille.volume: a disk that outlives machines. Each access to a field reads the lease's row, so fields are never stale.
#include "bindings/lua/workflow/volume.hpp"

#include <fmt/format.h>

namespace rille::lua {

namespace {

Volume& volume_of(lua_State* L, const char* method) { return check_object<Volume>(L, 1, method); }

int push_volume(lua_State* L, engine::VolumeView volume) {
  push_object(L, Volume{volume.id, volume.name});
  return 1;
}

bool volume_field(lua_State* L, std::string_view key) {
  const Volume& volume = volume_of(L, "volume");
  if (key == "name") {
    push(L, volume.name);
    return true;
  }
  const engine::VolumeView view = value_or_raise(L, LuaHost::of(L).run().volume_view(volume.id));
  for (const auto& [name, text] :
       {std::pair("id", &view.id), std::pair("provider", &view.provider), std::pair("region", &view.region),
        std::pair("kind", &view.kind), std::pair("state", &view.state), std::pair("volume", &view.volume)})
    if (key == name) {
      push(L, *text);
      return true;
    }
  if (key == "keep" || key == "shared") {
    push(L, key == "keep" ? view.keep : view.shared);
  } else if (key == "size") {
    push(L, static_cast<double>(view.size_bytes));
  } else if (key == "spent") {
    push(L, static_cast<double>(view.spent_micros) / 1e6);
  } else if (key == "price") {
    if (view.price_micros_per_hour >= 0) push(L, static_cast<double>(view.price_micros_per_hour) / 1e6);
    else lua_pushnil(L);  // nil: the price in dollars is unknown
  } else if (key == "attached_to") {
    if (view.user.empty()) lua_pushnil(L);
    else push(L, view.user);
  } else {
    return false;
  }
  return true;
}

int volume_to_string(lua_State* L) {
  const Volume& volume = volume_of(L, "volume");
  LuaHost& host = LuaHost::of(L);
  const auto view =
      host.has_run() ? host.run().volume_view(volume.id) : Result<engine::VolumeView>(make_error(ErrorKind::state, ""));
  if (!view) push(L, fmt::format("Volume '{}'", volume.name));
  else
    push(L, fmt::format("Volume '{}' ({} of {}, {}, {}, {})", volume.name, view->kind, view->provider, view->region,
                        view->shown_price == "?" ? "price unknown" : view->shown_price + "/h", view->state));
  return 1;
}

// Sets the provider if the grants leave one.
Result<> choose_provider(const Grants& grants, Value& options) {
  Value asked = options;
  RILLE_CHECK(grants.choose_providers("rille.volume", asked, true));
  const Value::Array* granted = asked["providers"].as_array();
  if (!granted || !options["providers"].is_null()) return {};
  if (granted->size() == 1) options.set("provider", granted->front());
  else
    return make_error(ErrorKind::invalid, "rille.volume: of which provider?",
                      "provider = one of those granted: " + asked["providers"].to_json());
  return {};
}

// rille.volume(name, options) -> Volume
Result<int> volume(lua_State* L) {
  Verb v = begin_verb(L, "volume");
  std::string name = check_name(L, 1, "volume");
  Value options{Value::Object{}};
  if (!lua_isnoneornil(L, 2)) {
    check_table(L, 2, "rille.volume's options");
    RILLE_TRY(options, to_value(L, 2, "rille.volume"));
    if (!options.as_object()) options = Value(Value::Object{});
  }
  RILLE_CHECK(choose_provider(v.host.grants(), options));
  return await(L, v.run.volume(v.id, std::move(name), std::move(options), v.source), push_volume, Waits::engine);
}

// vol:delete(): deletes the disk with its data
Result<int> volume_delete(lua_State* L) {
  Verb v = begin_verb(L, "delete");
  const Volume& volume = volume_of(L, "vol:delete");
  RILLE_TRY(const engine::VolumeView view, v.run.volume_view(volume.id));
  RILLE_CHECK(v.host.grants().keys("vol:delete", view.provider));
  return await(L, v.run.release(v.id, volume.id, v.source), push_nothing, Waits::engine);
}

Result<int> volume_describe(lua_State* L) {
  Verb v = begin_verb(L, "describe", Verbs::anywhere);
  RILLE_TRY(const engine::VolumeView view, v.run.volume_view(volume_of(L, "vol:describe").id));
  push_value(L, view.to_value());
  return 1;
}

// The value of the option `volumes`, at the stack's top: folder -> id of a volume's lease.
Value mounts_at_top(lua_State* L, const char* what) {
  const int table = lua_gettop(L);
  check_table(L, table, "volumes");
  Value out{Value::Object{}};
  lua_pushnil(L);
  while (lua_next(L, table)) {
    const Volume* volume = test_object<Volume>(L, lua_gettop(L));
    if (!volume || lua_type(L, -2) != LUA_TSTRING)
      raise_invalid(L,
                    fmt::format("{}: volumes: expected folder names and volumes, got {} = {}", what,
                                describe(L, lua_gettop(L) - 1), describe(L, lua_gettop(L))),
                    "volumes = { data = rille.volume(\"data\", { size = \"200GB\" }) }");
    std::size_t length = 0;
    const char* at = lua_tolstring(L, -2, &length);
    out.set(std::string(at, length), volume->id);
    lua_pop(L, 1);
  }
  return out;
}

}  // namespace

Result<Value> read_rent_options(lua_State* L, int index, const char* what) {
  Value volumes, options;
  lua_getfield(L, index, "volumes");
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    RILLE_TRY(options, to_value(L, index, what));
  } else {
    volumes = mounts_at_top(L, what);
    lua_pop(L, 1);
    lua_newtable(L);  // a copy without the volumes
    const int rest = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, index)) {
      const bool is_volumes = lua_type(L, -2) == LUA_TSTRING && std::string_view(lua_tostring(L, -2)) == "volumes";
      if (is_volumes) {
        lua_pop(L, 1);
        continue;
      }
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_rawset(L, rest);
    }
    RILLE_TRY(options, to_value(L, rest, what));
    lua_pop(L, 1);
  }
  if (options.as_array() && options.as_array()->empty()) options = Value(Value::Object{});
  if (!volumes.is_null()) options.set("volumes", std::move(volumes));
  return options;
}

int open_volume(lua_State* L) {
  lua_settop(L, 1);
  define_class<Volume>(L, {.name = "Volume",
                           .methods = {{"describe", bind<volume_describe>}},
                           .async_methods = {{"delete", bind<volume_delete>}},
                           .metamethods = {{"__tostring", bind<volume_to_string>}},
                           .field = volume_field,
                           .fields = {"name", "id", "provider", "region", "kind", "state", "volume", "keep", "shared",
                                      "size", "spent", "price", "attached_to"}});
  lua_newtable(L);
  set_async(L, "volume", bind<volume>);
  add_words(L, 1);
  return 0;
}

}  // namespace rille::lua
