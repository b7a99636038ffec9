// What stdlib/repl/keep.lua needs to write variables into the run's folder, and to read them again.
#include <fstream>
#include <iterator>

#include "bindings/cli/prompt/primitives.hpp"
#include "bindings/host/bind.hpp"
#include "bindings/host/codec.hpp"
#include "bindings/host/ship.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::cli {

namespace {

using namespace rille::host;

// encode(value) -> its text; nil and why it has none.
int prompt_encode(lua_State* L) {
  Result<Value> value = to_value(L, 1, "it");
  if (value) {
    push(L, value->to_json());
    return 1;
  }
  lua_pushnil(L);
  push(L, value.error().message);
  return 2;
}

Result<int> prompt_decode(lua_State* L) {
  RILLE_TRY(const Value value, Value::from_json(check_text(L, 1, "text")));
  push_value(L, value);
  return 1;
}

// ship(f) -> the text of a function with what it captures; nil and why it has none.
int prompt_ship(lua_State* L) {
  Result<Shipped> shipped = ship(L, 1, "it");
  if (shipped) {
    push(L, shipped->payload.to_json());
    return 1;
  }
  lua_pushnil(L);
  push(L, shipped.error().message);
  return 2;
}

int prompt_unship(lua_State* L) {
  Result<Value> payload = Value::from_json(check_text(L, 1, "text"));
  const Result<> made = payload ? unship(L, *payload) : payload.error();
  if (made) return 1;
  lua_pushnil(L);
  push(L, made.error().message);
  return 2;
}

std::string kept_path(lua_State* L, std::string_view name) { return repl_of(L).run->home() + "/" + std::string(name); }

int prompt_kept_path(lua_State* L) {
  push(L, kept_path(L, check_text(L, 1, "name")));
  return 1;
}

Result<int> prompt_write_kept(lua_State* L) {
  RILLE_CHECK(store::write_file_atomic(kept_path(L, check_text(L, 1, "name")), check_text(L, 2, "text"), 0600));
  return 0;
}

int prompt_read_kept(lua_State* L) {
  std::ifstream in(kept_path(L, check_text(L, 1, "name")), std::ios::binary);
  if (!in) return 0;
  push(L, std::string(std::istreambuf_iterator<char>(in), {}));
  return 1;
}

}  // namespace

void add_keeping(lua_State* L) {
  set_functions(L, {{"encode", bind<prompt_encode>},
                    {"decode", bind<prompt_decode>},
                    {"ship", bind<prompt_ship>},
                    {"unship", bind<prompt_unship>},
                    {"kept_path", bind<prompt_kept_path>},
                    {"write_kept", bind<prompt_write_kept>},
                    {"read_kept", bind<prompt_read_kept>}});
}

}  // namespace rille::cli
