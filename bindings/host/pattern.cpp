#include "bindings/host/pattern.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "bindings/host/host.hpp"
#include "bindings/host/pattern_match.hpp"

namespace rille::host {

namespace {

unsigned char byte_of(char c) { return static_cast<unsigned char>(c); }

constexpr std::array<bool, 256> specials = [] {
  std::array<bool, 256> out{};
  for (unsigned char c : {'^', '$', '*', '+', '?', '.', '(', '[', '%', '-'}) out[c] = true;
  return out;
}();

bool has_specials(const char* p, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    if (specials[byte_of(p[i])]) return true;
  return false;
}

// By the first byte, which is faster for most texts, as long as that takes linear time; then by memmem, which always
// does.
const char* find_plain(const char* s, std::size_t size, const char* p, std::size_t wanted) {
  if (wanted == 0) return s;
  if (wanted > size) return nullptr;
  const char* const last = s + (size - wanted);
  std::size_t work_left = 64 + size / 4;
  while (s <= last) {
    s = static_cast<const char*>(std::memchr(s, p[0], static_cast<std::size_t>(last - s) + 1));
    if (!s) return nullptr;
    if (std::memcmp(s, p, wanted) == 0) return s;
    ++s;
    const std::size_t work = 8 + wanted / 8;
    if (work > work_left)
      return static_cast<const char*>(memmem(s, static_cast<std::size_t>(last + wanted - s), p, wanted));
    work_left -= work;
  }
  return nullptr;
}

// Searches a text for a pattern, position by position.
struct Search {
  Matcher m;
  const char *at, *pattern;
  const char* lead = nullptr;  // result of Matcher::lead, if the pattern is not anchored
  bool anchored = false, begun = false;

  Search(const char* s, std::size_t size, const char* from, const char* p) : m(s, size), at(from), pattern(p) {}

  void set_anchored(bool may_be) {
    anchored = may_be && *pattern == '^';
    if (anchored) ++pattern;
    else lead = m.lead(pattern);
  }

  Matcher::Outcome next() {
    while (true) {
      if (!begun) {
        if (lead) {
          at = m.skip(at, pattern, lead);
          if (at == m.end()) return Matcher::Outcome::failed;
          if (m.tired()) return Matcher::Outcome::paused;
        }
        begun = true;
        m.begin_match(at, pattern);
      }
      const Matcher::Outcome o = m.run();
      if (o == Matcher::Outcome::paused || o == Matcher::Outcome::broken) return o;
      begun = false;
      if (o == Matcher::Outcome::matched) return o;
      if (at++ >= m.end() || anchored) return o;
    }
  }
};

enum class What : std::uint8_t { find, match, gmatch };

// Pushes the results of the Lua function. -1: see q.m.error().
int push_found(lua_State* L, Search& q, What what, bool found) {
  if (!found) {
    if (what == What::gmatch) return 0;
    lua_pushnil(L);
    return 1;
  }
  if (what != What::find) return q.m.push_captures(L, q.at);
  lua_pushinteger(L, q.at - q.m.begin() + 1);
  lua_pushinteger(L, q.m.match_end() - q.m.begin());
  const int n = q.m.push_captures(L, nullptr);
  return n < 0 ? n : n + 2;
}

// Position at which the next call of a gmatch starts: one further after an empty match.
lua_Integer gmatch_goes_on(const Search& q) {
  return q.m.match_end() - q.m.begin() + (q.m.match_end() == q.at ? 1 : 0);
}

class PausedSearch final : public PausedCall {
 public:
  PausedSearch(lua_State* L, const Search& q, What what) : kept_(L, LuaHost::of(L).lua()), q_(q), what_(what) {}
  bool go_on() override {
    q_.m.refill();
    outcome_ = q_.next();
    return outcome_ != Matcher::Outcome::paused;
  }
  int finish(lua_State* L) override {
    const bool found = outcome_ == Matcher::Outcome::matched;
    if (found && what_ == What::gmatch) {
      kept_.push_function(L);
      lua_pushinteger(L, gmatch_goes_on(q_));
      lua_setupvalue(L, -2, 3);
      lua_pop(L, 1);
    }
    return outcome_ == Matcher::Outcome::broken ? -1 : push_found(L, q_, what_, found);
  }
  const char* error() const override { return q_.m.error(); }

 private:
  CallKept kept_;
  Search q_;
  What what_;
  Matcher::Outcome outcome_ = Matcher::Outcome::paused;
};

int run_search(lua_State* L, Search& q, What what) {
  Matcher::Outcome o;
  while ((o = q.next()) == Matcher::Outcome::paused) {
    LuaHost& host = LuaHost::of(L);
    host.check(L);
    if (host.must_give_way(L)) return host.give_way_in(L, std::make_unique<PausedSearch>(L, q, what));
    q.m.refill();
  }
  const bool found = o == Matcher::Outcome::matched;
  if (found && what == What::gmatch) {
    lua_pushinteger(L, gmatch_goes_on(q));
    lua_replace(L, lua_upvalueindex(3));
  }
  const int n = o == Matcher::Outcome::broken ? -1 : push_found(L, q, what, found);
  return n < 0 ? luaL_error(L, "%s", q.m.error()) : n;
}

int find_or_match(lua_State* L, What what) {
  std::size_t size = 0, pattern_size = 0;
  const bool find = what == What::find;
  const char* s = luaL_checklstring(L, 1, &size);
  const char* p = luaL_checklstring(L, 2, &pattern_size);
  std::size_t start = 0;
  bool plain = find;
  if (const int given = lua_gettop(L); given > 2) {
    lua_Integer init = luaL_optinteger(L, 3, 1);
    init = init < 0 ? init + static_cast<lua_Integer>(size) : init - 1;
    start = init < 0 ? 0 : std::min(static_cast<std::size_t>(init), size);
    plain = find && ((given > 3 && lua_toboolean(L, 4)) || !has_specials(p, pattern_size));
  } else if (find) {
    plain = !has_specials(p, pattern_size);
  }
  if (plain) {
    const char* found = find_plain(s + start, size - start, p, pattern_size);
    if (!found) {
      lua_pushnil(L);
      return 1;
    }
    lua_pushinteger(L, found - s + 1);
    lua_pushinteger(L, found - s + static_cast<std::ptrdiff_t>(pattern_size));
    return 2;
  }
  Search q(s, size, s + start, p);
  q.set_anchored(true);
  return run_search(L, q, what);
}

int string_find(lua_State* L) { return find_or_match(L, What::find); }
int string_match(lua_State* L) { return find_or_match(L, What::match); }

// Upvalues: subject, pattern, position.
int gmatch_next(lua_State* L) {
  std::size_t size = 0;
  const char* s = lua_tolstring(L, lua_upvalueindex(1), &size);
  const char* from = s + lua_tointeger(L, lua_upvalueindex(3));
  if (from > s + size) return 0;
  Search q(s, size, from, lua_tostring(L, lua_upvalueindex(2)));
  q.set_anchored(false);
  return run_search(L, q, What::gmatch);
}

int string_gmatch(lua_State* L) {
  luaL_checkstring(L, 1);
  luaL_checkstring(L, 2);
  lua_settop(L, 2);
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, gmatch_next, 3);
  return 1;
}

}  // namespace

void set_pattern_functions(lua_State* L) {
  set_functions(L, {{"find", string_find},
                    {"match", string_match},
                    {"gmatch", string_gmatch},
                    {"gsub", string_gsub},
                    {"rep", string_rep}});
}

}  // namespace rille::host
