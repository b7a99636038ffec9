// rille.data.tokenizer; runtime/compute/data/tokenizer.hpp does the work.
#include "runtime/compute/data/tokenizer.hpp"

#include "bindings/lua/compute/batch.hpp"

namespace rille::lua {

namespace {

using data::Tokenizer;

struct TokenizerHandle {
  Tokenizer tokenizer;
  MemoryHeld held;
  std::string path, pattern;
};

Tokenizer& tokenizer_of(lua_State* L, const char* what) { return check_object<TokenizerHandle>(L, 1, what).tokenizer; }

// tokenizer(path of the vocabulary, pattern that splits text; nil: default)
Result<int> open_vocabulary(lua_State* L) {
  const std::string path(check_text(L, 1, "rille.data.tokenizer"));
  const std::string pattern(lua_isnoneornil(L, 2) ? "" : check_text(L, 2, "rille.data.tokenizer's pattern"));
  RILLE_TRY(const std::string granted, may_read(L, path, Grants::Names::tree));
  std::int64_t bytes = 0;
  MemoryHeld held;
  const data::Room room = [&](std::int64_t more) -> Result<> {
    held = MemoryHeld();
    RILLE_TRY(held, MemoryHeld::take(LuaHost::of(L).options().memory, MemoryUse::Part::tensors, bytes += more));
    return success();
  };
  auto opened = Tokenizer::open(granted, pattern, {look_at_limits(L), room, {}});
  if (!opened) return at_line(L, std::move(opened).error());
  held = MemoryHeld();
  RILLE_TRY(held, MemoryHeld::take(LuaHost::of(L).options().memory, MemoryUse::Part::tensors, bytes / 4));
  push_object(L, TokenizerHandle{std::move(*opened), std::move(held), path, pattern});
  return 1;
}

Result<int> encode(lua_State* L) {
  Tokenizer& t = tokenizer_of(L, "tokenizer:encode");
  const std::string_view text = check_text(L, 2, "tokenizer:encode");
  data::Encoding how;
  if (!lua_isnoneornil(L, 3)) {
    check_known(L, 3, "tokenizer:encode", {"special", "before", "behind", "continued"}, false);
    how = {option_bool(L, 3, "special", false), option_bool(L, 3, "before", false), option_bool(L, 3, "behind", false),
           option_bool(L, 3, "continued", false)};
  }
  std::vector<MemoryHeld> held;
  how.asked = {look_at_limits(L), keep_room(L, held), {}};
  auto ids = t.encode(text, how);
  if (!ids) return at_line(L, std::move(ids).error());
  lua_createtable(L, static_cast<int>(ids->size()), 0);
  for (std::size_t i = 0; i < ids->size(); ++i) {
    lua_pushnumber(L, (*ids)[i]);
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
  return 1;
}

// decode(id, {continued =}) or decode({ids}, {continued =}) -> text
Result<int> decode(lua_State* L) {
  Tokenizer& t = tokenizer_of(L, "tokenizer:decode");
  std::vector<std::int32_t> ids;
  const auto add = [&](int index) {
    const double n = check_number(L, index, "tokenizer:decode");
    ids.push_back(n >= 0 && n < 2147483647.0 && n == static_cast<double>(static_cast<std::int64_t>(n))
                      ? static_cast<std::int32_t>(n)
                      : -1);
  };
  if (lua_istable(L, 2)) {
    for (std::size_t i = 1, n = lua_objlen(L, 2); i <= n; ++i) {
      lua_rawgeti(L, 2, static_cast<int>(i));
      add(-1);
      lua_pop(L, 1);
    }
  } else {
    add(2);
  }
  std::vector<MemoryHeld> held;
  if (!lua_isnoneornil(L, 3)) check_known(L, 3, "tokenizer:decode", {"continued"}, false);
  auto text = t.decode(ids, lua_istable(L, 3) && option_bool(L, 3, "continued", false),
                       {look_at_limits(L), keep_room(L, held), {}});
  if (!text) return at_line(L, std::move(text).error());
  push(L, *text);
  return 1;
}

int id_of(lua_State* L) {
  const auto id = tokenizer_of(L, "tokenizer:id_of").id_of(check_text(L, 2, "tokenizer:id_of"));
  if (!id) return 0;
  lua_pushnumber(L, *id);
  return 1;
}

bool tokenizer_field(lua_State* L, std::string_view key) {
  Tokenizer& t = tokenizer_of(L, "tokenizer");
  if (key == "size") {
    lua_pushnumber(L, static_cast<double>(t.size()));
  } else if (key == "special") {
    lua_newtable(L);
    int n = 0;
    for (const std::string& text : t.special()) {
      push(L, text);
      lua_rawseti(L, -2, ++n);
    }
  } else if (key == "path" || key == "pattern") {
    const auto& handle = check_object<TokenizerHandle>(L, 1, "tokenizer");
    push(L, key == "path" ? handle.path : handle.pattern);
  } else {
    return false;
  }
  return true;
}

int tokenizer_to_string(lua_State* L) {
  Tokenizer& t = tokenizer_of(L, "tokenizer");
  push(L, fmt::format("Tokenizer: {} ids, {} special", t.size(), t.special().size()));
  return 1;
}

}  // namespace

void add_tokenizer_natives(lua_State* L) {
  define_class<TokenizerHandle>(
      L, {.name = "Tokenizer",
          .methods = {{"encode", bind<encode>}, {"decode", bind<decode>}, {"id_of", bind<id_of>}},
          .metamethods = {{"__tostring", bind<tokenizer_to_string>}},
          .field = tokenizer_field,
          .fields = {"size", "special", "path", "pattern"}});
  set_functions(L, {{"tokenizer", bind<open_vocabulary>}});
}

}  // namespace rille::lua
