#include "bindings/host/pattern.hpp"

#include <array>
#include <cstring>

#include "bindings/host/host.hpp"
#include "bindings/host/prelude.hpp"

namespace rille::host {

namespace {

constexpr int captures_max = 32;
constexpr int depth_max = 200;  // of recursion, as in LuaJIT
constexpr std::ptrdiff_t capture_unfinished = -1, capture_position = -2;
constexpr std::ptrdiff_t steps_per_check = 1 << 16;  // well below a millisecond
constexpr char escape = '%';

// Character classes of ASCII, whatever the locale. A bit for each letter; upper case letters negate them.
enum Class : std::uint16_t {
  is_alpha = 1,
  is_cntrl = 2,
  is_digit = 4,
  is_lower = 8,
  is_punct = 16,
  is_space = 32,
  is_upper = 64,
  is_xdigit = 128
};

constexpr std::array<std::uint16_t, 256> classes = [] {
  std::array<std::uint16_t, 256> out{};
  for (int c = 0; c < 128; ++c) {
    int m = 0;
    const bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z', digit = c >= '0' && c <= '9';
    if (lower) m |= is_alpha | is_lower;
    if (upper) m |= is_alpha | is_upper;
    if (digit) m |= is_digit | is_xdigit;
    if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) m |= is_xdigit;
    if (c < 32 || c == 127) m |= is_cntrl;
    if ((c >= 9 && c <= 13) || c == ' ') m |= is_space;
    if (c > 32 && c < 127 && !lower && !upper && !digit) m |= is_punct;
    out[static_cast<std::size_t>(c)] = static_cast<std::uint16_t>(m);
  }
  return out;
}();

constexpr std::uint16_t class_of_letter(unsigned char letter) {
  switch (letter) {
    case 'a': return is_alpha;
    case 'c': return is_cntrl;
    case 'd': return is_digit;
    case 'g': return is_alpha | is_digit | is_punct;
    case 'l': return is_lower;
    case 'p': return is_punct;
    case 's': return is_space;
    case 'u': return is_upper;
    case 'w': return is_alpha | is_digit;
    case 'x': return is_xdigit;
    default: return 0;
  }
}

constexpr std::array<std::uint16_t, 32> letter_class = [] {
  std::array<std::uint16_t, 32> out{};
  for (unsigned char c = 'a'; c <= 'z'; ++c) out[c & 31] = class_of_letter(c);
  return out;
}();

unsigned char byte(char c) { return static_cast<unsigned char>(c); }
bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

bool in_class(unsigned char c, unsigned char letter) {
  if ((letter & 0xc0) == 0x40) {
    if (const std::uint16_t mask = letter_class[letter & 31]) return ((classes[c] & mask) != 0) == ((letter & 32) != 0);
    if (letter == 'z') return c == 0;
    if (letter == 'Z') return c != 0;
  }
  return letter == c;
}

// The pattern ends at its first zero byte, as in Lua 5.1.
class Matcher {
 public:
  Matcher(lua_State* L, const char* source, std::size_t size) : L_(L), begin_(source), end_(source + size) {}

  // The end of the match that begins at s, or null.
  const char* match_at(const char* s, const char* pattern) {
    level_ = depth_ = 0;
    return match(s, pattern);
  }

  // Pushes every capture; the whole match if there is none and `begin` is given.
  int push_captures(const char* begin, const char* end) {
    const int count = level_ == 0 && begin ? 1 : level_;
    luaL_checkstack(L_, count, "too many captures");
    for (int i = 0; i < count; ++i) push_capture(i, begin, end);
    return count;
  }

  void push_capture(int i, const char* begin, const char* end) {
    if (i >= level_) {
      if (i != 0) luaL_error(L_, "invalid capture index");
      lua_pushlstring(L_, begin, static_cast<std::size_t>(end - begin));
      return;
    }
    const Capture& c = captures_[i];
    if (c.size == capture_unfinished) luaL_error(L_, "unfinished capture");
    if (c.size == capture_position) lua_pushinteger(L_, c.begin - begin_ + 1);
    else lua_pushlstring(L_, c.begin, static_cast<std::size_t>(c.size));
  }

  void count(std::ptrdiff_t steps) {
    steps_left_ -= steps;
    if (steps_left_ < 0) check();
  }

  const char* begin() const { return begin_; }
  const char* end() const { return end_; }

 private:
  struct Capture {
    const char* begin;
    std::ptrdiff_t size;
  };

  __attribute__((noinline, cold)) void check() {
    steps_left_ = steps_per_check;
    LuaHost::of(L_).check(L_);
  }

  const char* item_end(const char* p) const {
    switch (*p++) {
      case escape:
        if (*p == '\0') luaL_error(L_, "malformed pattern (ends with '%%')");
        return p + 1;
      case '[':
        if (*p == '^') ++p;
        do {
          if (*p == '\0') luaL_error(L_, "malformed pattern (missing ']')");
          if (*p++ == escape && *p != '\0') ++p;
        } while (*p != ']');
        return p + 1;
      default: return p;
    }
  }

  // p: the '['; last: the ']'
  static bool in_set(unsigned char c, const char* p, const char* last) {
    bool found = true;
    if (p[1] == '^') {
      found = false;
      ++p;
    }
    while (++p < last) {
      if (*p == escape) {
        ++p;
        if (in_class(c, byte(*p))) return found;
      } else if (p[1] == '-' && p + 2 < last) {
        p += 2;
        if (byte(p[-2]) <= c && c <= byte(*p)) return found;
      } else if (byte(*p) == c) {
        return found;
      }
    }
    return !found;
  }

  static bool matches_item(unsigned char c, const char* p, const char* item_end) {
    switch (*p) {
      case '.': return true;
      case escape: return in_class(c, byte(p[1]));
      case '[': return in_set(c, p, item_end - 1);
      default: return byte(*p) == c;
    }
  }

  const char* match_balance(const char* s, const char* p) {
    if (p[0] == '\0' || p[1] == '\0') luaL_error(L_, "unbalanced pattern");
    if (s >= end_ || *s != p[0]) return nullptr;
    const char open = p[0], close = p[1];
    std::ptrdiff_t depth = 1;
    while (++s < end_) {
      count(1);
      if (*s == close) {
        if (--depth == 0) return s + 1;
      } else if (*s == open) {
        ++depth;
      }
    }
    return nullptr;
  }

  const char* match_most(const char* s, const char* p, const char* after) {
    const std::ptrdiff_t cost = 1 + (after - p) / 16;
    std::ptrdiff_t n = 0;
    while (s + n < end_ && matches_item(byte(s[n]), p, after)) {
      ++n;
      count(cost);
    }
    for (; n >= 0; --n)
      if (const char* rest = match(s + n, after + 1)) return rest;
    return nullptr;
  }

  const char* match_least(const char* s, const char* p, const char* after) {
    while (true) {
      if (const char* rest = match(s, after + 1)) return rest;
      if (s >= end_ || !matches_item(byte(*s), p, after)) return nullptr;
      count(1 + (after - p) / 16);
      ++s;
    }
  }

  const char* start_capture(const char* s, const char* p, std::ptrdiff_t kind) {
    if (level_ >= captures_max) luaL_error(L_, "too many captures");
    captures_[level_++] = {s, kind};
    const char* rest = match(s, p);
    if (!rest) --level_;
    return rest;
  }

  const char* end_capture(const char* s, const char* p) {
    int open = level_ - 1;
    while (open >= 0 && captures_[open].size != capture_unfinished) --open;
    if (open < 0) luaL_error(L_, "invalid pattern capture");
    captures_[open].size = s - captures_[open].begin;
    const char* rest = match(s, p);
    if (!rest) captures_[open].size = capture_unfinished;
    return rest;
  }

  const char* match_capture(const char* s, char digit) {
    const int i = digit - '1';
    if (i < 0 || i >= level_ || captures_[i].size == capture_unfinished) luaL_error(L_, "invalid capture index");
    const auto size = static_cast<std::size_t>(captures_[i].size);  // of a position: too large for any subject
    if (static_cast<std::size_t>(end_ - s) < size) return nullptr;
    count(static_cast<std::ptrdiff_t>(size / 16));
    return std::memcmp(captures_[i].begin, s, size) == 0 ? s + size : nullptr;
  }

  // %f[set]: whether s is where the set begins to hold.
  bool at_frontier(const char* s, const char* p, const char* after) const {
    const char before = s == begin_ ? '\0' : s[-1];
    return !in_set(byte(before), p, after - 1) && in_set(byte(*s), p, after - 1);
  }

  const char* match(const char* s, const char* p) {
    if (++depth_ > depth_max) luaL_error(L_, "pattern too complex");
    const char* result = match_rest(s, p);
    --depth_;
    return result;
  }

  const char* match_rest(const char* s, const char* p) {
    while (true) {
      count(1);
      switch (*p) {
        case '\0': return s;
        case '(':
          return p[1] == ')' ? start_capture(s, p + 2, capture_position) : start_capture(s, p + 1, capture_unfinished);
        case ')': return end_capture(s, p + 1);
        case '$':
          if (p[1] == '\0') return s == end_ ? s : nullptr;
          break;
        case escape:
          if (p[1] == 'b') {
            if (!(s = match_balance(s, p + 2))) return nullptr;
            p += 4;
            continue;
          }
          if (p[1] == 'f') {
            p += 2;
            if (*p != '[') luaL_error(L_, "missing '[' after '%%f' in pattern");
            const char* after = item_end(p);
            count((after - p) / 16);
            if (!at_frontier(s, p, after)) return nullptr;
            p = after;
            continue;
          }
          if (is_digit_char(p[1])) {
            if (!(s = match_capture(s, p[1]))) return nullptr;
            p += 2;
            continue;
          }
          break;
        default: break;
      }
      const char* after = item_end(p);
      if (after - p > 16) count((after - p) / 16);
      const bool one = s < end_ && matches_item(byte(*s), p, after);
      switch (*after) {
        case '?':
          if (one)
            if (const char* rest = match(s + 1, after + 1)) return rest;
          p = after + 1;
          continue;
        case '*': return match_most(s, p, after);
        case '+': return one ? match_most(s + 1, p, after) : nullptr;
        case '-': return match_least(s, p, after);
        default:
          if (!one) return nullptr;
          ++s;
          p = after;
      }
    }
  }

  lua_State* L_;
  const char* begin_;
  const char* end_;
  std::ptrdiff_t steps_left_ = steps_per_check;
  int level_ = 0, depth_ = 0;
  Capture captures_[captures_max];
};

constexpr std::array<bool, 256> specials = [] {
  std::array<bool, 256> out{};
  for (unsigned char c : {'^', '$', '*', '+', '?', '.', '(', '[', '%', '-'}) out[c] = true;
  return out;
}();

bool has_specials(const char* p, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    if (specials[byte(p[i])]) return true;
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

int find_or_match(lua_State* L, bool find) {
  std::size_t size = 0, pattern_size = 0;
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
  Matcher m(L, s, size);
  const bool anchored = *p == '^';
  if (anchored) ++p;
  const char* at = s + start;
  do {
    const char* end = m.match_at(at, p);
    if (!end) continue;
    if (!find) return m.push_captures(at, end);
    lua_pushinteger(L, at - s + 1);
    lua_pushinteger(L, end - s);
    return m.push_captures(nullptr, nullptr) + 2;
  } while (at++ < m.end() && !anchored);
  lua_pushnil(L);
  return 1;
}

int string_find(lua_State* L) { return find_or_match(L, true); }
int string_match(lua_State* L) { return find_or_match(L, false); }

// Upvalues: subject, pattern, position.
int gmatch_next(lua_State* L) {
  std::size_t size = 0;
  const char* s = lua_tolstring(L, lua_upvalueindex(1), &size);
  const char* p = lua_tostring(L, lua_upvalueindex(2));
  Matcher m(L, s, size);
  for (const char* at = s + lua_tointeger(L, lua_upvalueindex(3)); at <= m.end(); ++at) {
    const char* end = m.match_at(at, p);
    if (!end) continue;
    lua_pushinteger(L, end - s + (end == at ? 1 : 0));  // on after an empty match
    lua_replace(L, lua_upvalueindex(3));
    return m.push_captures(at, end);
  }
  return 0;
}

int string_gmatch(lua_State* L) {
  luaL_checkstring(L, 1);
  luaL_checkstring(L, 2);
  lua_settop(L, 2);
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, gmatch_next, 3);
  return 1;
}

void add_replacement_text(lua_State* L, Matcher& m, luaL_Buffer* out, const char* begin, const char* end) {
  std::size_t size = 0;
  const char* by = lua_tolstring(L, 3, &size);
  for (std::size_t i = 0; i < size; ++i) {
    if (by[i] != escape) {
      luaL_addchar(out, by[i]);
      continue;
    }
    m.count(8);
    ++i;  // the text ends in a zero byte
    if (!is_digit_char(by[i])) {
      luaL_addchar(out, by[i]);
    } else if (by[i] == '0') {
      luaL_addlstring(out, begin, static_cast<std::size_t>(end - begin));
    } else {
      m.push_capture(by[i] - '1', begin, end);
      luaL_addvalue(out);
    }
  }
}

void add_replacement(lua_State* L, Matcher& m, luaL_Buffer* out, const char* begin, const char* end) {
  switch (lua_type(L, 3)) {
    case LUA_TFUNCTION: {
      lua_pushvalue(L, 3);
      const int n = m.push_captures(begin, end);
      lua_call(L, n, 1);
      break;
    }
    case LUA_TTABLE:
      m.push_capture(0, begin, end);
      lua_gettable(L, 3);
      break;
    default: add_replacement_text(L, m, out, begin, end); return;
  }
  if (!lua_toboolean(L, -1)) {
    lua_pop(L, 1);
    lua_pushlstring(L, begin, static_cast<std::size_t>(end - begin));
  } else if (!lua_isstring(L, -1)) {
    luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
  }
  luaL_addvalue(out);
}

int string_gsub(lua_State* L) {
  std::size_t size = 0;
  const char* at = luaL_checklstring(L, 1, &size);
  const char* p = luaL_checkstring(L, 2);
  const int type = lua_type(L, 3);
  const lua_Integer most = luaL_optinteger(L, 4, static_cast<lua_Integer>(size + 1));
  if (type != LUA_TNUMBER && type != LUA_TSTRING && type != LUA_TFUNCTION && type != LUA_TTABLE)
    return luaL_argerror(L, 3, "string/function/table expected");
  if (type == LUA_TFUNCTION || type == LUA_TTABLE) check_stack(L);
  const bool anchored = *p == '^';
  if (anchored) ++p;
  Matcher m(L, at, size);
  lua_Integer n = 0;
  luaL_Buffer out;  // within the memory limit of Lua
  luaL_buffinit(L, &out);
  while (n < most) {
    const char* end = m.match_at(at, p);
    if (end) {
      ++n;
      add_replacement(L, m, &out, at, end);
    }
    if (end && end > at) at = end;
    else if (at < m.end()) luaL_addchar(&out, *at++);
    else break;
    if (anchored) break;
  }
  luaL_addlstring(&out, at, static_cast<std::size_t>(m.end() - at));
  luaL_pushresult(&out);
  lua_pushinteger(L, n);
  return 2;
}

}  // namespace

void set_pattern_functions(lua_State* L) {
  set_functions(L, {{"find", string_find}, {"match", string_match}, {"gmatch", string_gmatch}, {"gsub", string_gsub}});
}

}  // namespace rille::host
