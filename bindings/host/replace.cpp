// string.gsub. By a text: one function. By a table or function: in parts, for the loop in prelude.cpp.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "bindings/host/host.hpp"
#include "bindings/host/pattern.hpp"
#include "bindings/host/pattern_match.hpp"

namespace rille::host {

namespace {

// Finds the next match, and appends the text between two matches to the output.
struct Replacing {
  Matcher m;
  const char *at, *pattern;
  lua_Integer n = 0, most;
  bool anchored, begun = false, over = false;
  const char* lead = nullptr;  // result of Matcher::lead, if the pattern is not anchored

  Replacing(const char* s, std::size_t size, const char* p, lua_Integer times)
      : m(s, size), at(s), pattern(p), most(times), anchored(*p == '^') {
    if (anchored) ++pattern;
    else lead = m.lead(pattern);
  }

  // failed: there are no more matches.
  template <class Output>
  Matcher::Outcome next(Output& out) {
    while (!over && n < most) {
      if (!begun) {
        if (lead) {
          const char* const to = m.skip(at, pattern, lead);
          out.add(at, static_cast<std::size_t>(to - at));
          at = to;
          over = at == m.end();
          if (over) break;
          if (m.tired()) return Matcher::Outcome::paused;
        }
        begun = true;
        m.begin_match(at, pattern);
      }
      const Matcher::Outcome o = m.run();
      if (o == Matcher::Outcome::paused || o == Matcher::Outcome::broken) return o;
      begun = false;
      over = anchored;
      if (o == Matcher::Outcome::matched) {
        ++n;
        return o;
      }
      one_further(out);
    }
    return Matcher::Outcome::failed;
  }

  // Call after a match's replacement was appended.
  template <class Output>
  void behind_match(Output& out) {
    if (m.match_end() > at) at = m.match_end();
    else one_further(out);
  }

  template <class Output>
  void add_rest(Output&& out) const {
    out.add(at, static_cast<std::size_t>(m.end() - at));
  }

 private:
  template <class Output>
  void one_further(Output& out) {
    if (at < m.end()) out.add(at++, 1);
    else over = true;
  }
};

struct BufferOutput {  // within the memory limit of Lua
  luaL_Buffer* buffer;
  void add(const char* s, std::size_t size) {
    if (size == 1) luaL_addchar(buffer, *s);
    else luaL_addlstring(buffer, s, size);
  }
};

// false: see r.m.error()
template <class Output>
bool add_text(Replacing& r, const Matcher::Text& by, Output& out) {
  for (std::size_t i = 0; i < by.size; ++i) {
    if (by.data[i] != '%') {
      out.add(by.data + i, 1);
      continue;
    }
    r.m.count(8);
    ++i;  // the text ends in a zero byte
    Matcher::Text text{by.data + i, 1};
    if (by.data[i] == '0') text = {r.at, static_cast<std::size_t>(r.m.match_end() - r.at)};
    else if (by.data[i] >= '0' && by.data[i] <= '9' && !r.m.capture(by.data[i] - '1', r.at, &text)) return false;
    if (text.data) {
      out.add(text.data, text.size);
      r.m.count(static_cast<std::ptrdiff_t>(text.size / 16));
    } else {
      char digits[24];
      const auto last = std::to_chars(digits, digits + sizeof digits, text.size).ptr;
      out.add(digits, static_cast<std::size_t>(last - digits));
    }
  }
  return true;
}

// failed: all matches are replaced.
template <class Output>
Matcher::Outcome replace_by_text(Replacing& r, const Matcher::Text& by, Output& out) {
  Matcher::Outcome o;
  while ((o = r.next(out)) == Matcher::Outcome::matched) {
    if (!add_text(r, by, out)) return Matcher::Outcome::broken;
    r.behind_match(out);
  }
  if (o == Matcher::Outcome::failed) r.add_rest(out);
  return o;
}

struct HeapOutput {
  std::string text;
  std::size_t most;
  bool too_long = false;
  void add(const char* s, std::size_t size) {
    if (text.size() + size > most) too_long = true;
    else text.append(s, size);
  }
};

class PausedReplacing final : public PausedCall {
 public:
  PausedReplacing(lua_State* L, const Replacing& r, const Matcher::Text& by, const char* out, std::size_t size)
      : kept_(L, LuaHost::of(L).lua()), r_(r), by_(by), out_{std::string(out, size), room(L)} {}
  bool go_on() override {
    r_.m.refill();
    outcome_ = replace_by_text(r_, by_, out_);
    return outcome_ != Matcher::Outcome::paused || out_.too_long;
  }
  int finish(lua_State* L) override {
    if (outcome_ == Matcher::Outcome::broken || out_.too_long) return -1;
    lua_pushlstring(L, out_.text.data(), out_.text.size());
    lua_pushinteger(L, r_.n);
    return 2;
  }
  const char* error() const override { return out_.too_long ? "not enough memory" : r_.m.error(); }

 private:
  // The largest possible size of the output, which counts against Lua's memory limit.
  static std::size_t room(lua_State* L) {
    const LuaState& state = LuaState::of(L);
    if (state.bytes_limit() == 0) return SIZE_MAX;
    return state.bytes_limit() - std::min(state.bytes_limit(), state.bytes_used());
  }

  CallKept kept_;
  Replacing r_;
  Matcher::Text by_;
  HeapOutput out_;
  Matcher::Outcome outcome_ = Matcher::Outcome::paused;
};

}  // namespace

// Replaces by a text; for tables and functions see gsub_next.
int string_gsub(lua_State* L) {
  std::size_t size = 0;
  Matcher::Text by;
  const char* s = luaL_checklstring(L, 1, &size);
  const char* p = luaL_checkstring(L, 2);
  const int type = lua_type(L, 3);
  const lua_Integer most = luaL_optinteger(L, 4, static_cast<lua_Integer>(size + 1));
  if (type != LUA_TNUMBER && type != LUA_TSTRING) return luaL_argerror(L, 3, "string/function/table expected");
  by.data = lua_tolstring(L, 3, &by.size);
  Replacing r(s, size, p, most);
  luaL_Buffer buffer;
  luaL_buffinit(L, &buffer);
  BufferOutput out{&buffer};
  Matcher::Outcome o;
  while ((o = replace_by_text(r, by, out)) == Matcher::Outcome::paused) {
    LuaHost& host = LuaHost::of(L);
    host.check(L);
    if (host.must_give_way(L)) {
      luaL_pushresult(&buffer);
      std::size_t done = 0;
      const char* text = lua_tolstring(L, -1, &done);
      return host.give_way_in(L, std::make_unique<PausedReplacing>(L, r, by, text, done));
    }
    r.m.refill();
  }
  if (o == Matcher::Outcome::broken) return luaL_error(L, "%s", r.m.error());
  luaL_pushresult(&buffer);
  lua_pushinteger(L, r.n);
  return 2;
}

namespace {

// The parts of a gsub whose loop is Lua code, so that the replacing function may wait. `box` is a table that holds the
// output's memory, which counts as Lua's.
struct Gsub {
  Replacing r;
  bool owes_value = false;  // captures of the last match
  char* data = nullptr;
  std::size_t size = 0, capacity = 0;
};

struct BoxOutput {
  lua_State* L;
  int box;
  Gsub* g;
  void add(const char* s, std::size_t size) {
    if (g->size + size > g->capacity) {
      g->capacity = std::max({std::size_t(256), 2 * g->capacity, g->size + size});
      auto* larger = static_cast<char*>(lua_newuserdata(L, g->capacity));
      if (g->size) std::memcpy(larger, g->data, g->size);
      g->data = larger;
      lua_rawseti(L, box, 1);
    }
    if (size) std::memcpy(g->data + g->size, s, size);
    g->size += size;
  }
};

// Adds the script position of the gsub call to an error.
int gsub_error(lua_State* L, const char* text) {
  luaL_where(L, 2);
  lua_pushstring(L, text);
  lua_concat(L, 2);
  return lua_error(L);
}

// (text, pattern, most or nil) -> state
int gsub_begin(lua_State* L) {
  std::size_t size = 0;
  const char* s = lua_tolstring(L, 1, &size);
  const lua_Integer most = luaL_optinteger(L, 3, static_cast<lua_Integer>(size + 1));
  new (lua_newuserdata(L, sizeof(Gsub))) Gsub{Replacing(s, size, lua_tostring(L, 2), most)};
  return 1;
}

void add_value(lua_State* L, Replacing& r, BoxOutput out) {
  const char* text = r.at;
  auto size = static_cast<std::size_t>(r.m.match_end() - r.at);
  if (lua_toboolean(L, 3)) {
    if (!lua_isstring(L, 3)) gsub_error(L, lua_pushfstring(L, "invalid replacement value (a %s)", luaL_typename(L, 3)));
    text = lua_tolstring(L, 3, &size);
  }
  out.add(text, size);
  r.behind_match(out);
}

// (state, box, the replacing function's value for the last match) -> whether there is another match; nil: call again
int gsub_next(lua_State* L) {
  lua_settop(L, 3);
  LuaHost::of(L).check(L);
  auto* g = static_cast<Gsub*>(lua_touserdata(L, 1));
  BoxOutput out{L, 2, g};
  if (std::exchange(g->owes_value, false)) add_value(L, g->r, out);
  g->r.m.refill();
  const Matcher::Outcome o = g->r.next(out);
  if (o == Matcher::Outcome::broken) return gsub_error(L, g->r.m.error());
  if (o == Matcher::Outcome::paused) return 0;
  g->owes_value = o == Matcher::Outcome::matched;
  lua_pushboolean(L, g->owes_value);
  return 1;
}

// (state) -> arguments of the replacing function
int gsub_captures(lua_State* L) {
  auto* g = static_cast<Gsub*>(lua_touserdata(L, 1));
  const int n = g->r.m.push_captures(L, g->r.at);
  return n < 0 ? gsub_error(L, g->r.m.error()) : n;
}

// (state) -> its first argument
int gsub_key(lua_State* L) {
  auto* g = static_cast<Gsub*>(lua_touserdata(L, 1));
  return g->r.m.push_capture(L, 0, g->r.at) ? 1 : gsub_error(L, g->r.m.error());
}

// (state, box) -> the new text, the number of matches
int gsub_end(lua_State* L) {
  auto* g = static_cast<Gsub*>(lua_touserdata(L, 1));
  g->r.add_rest(BoxOutput{L, 2, g});
  lua_pushlstring(L, g->data, g->size);
  lua_pushinteger(L, g->r.n);
  return 2;
}

}  // namespace

void set_gsub_functions(lua_State* L) {
  set_functions(L, {{"gsub_begin", gsub_begin},
                    {"gsub_next", gsub_next},
                    {"gsub_captures", gsub_captures},
                    {"gsub_key", gsub_key},
                    {"gsub_end", gsub_end}});
}

}  // namespace rille::host
