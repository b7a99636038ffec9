// Matcher: whether a Lua pattern matches at a position of a text. Used by pattern.cpp and replace.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bindings/host/lua.hpp"

namespace rille::host {

// The pattern ends at its first zero byte, as in Lua 5.1. Alternatives still to try are in frames_, not on the C stack,
// so that a match can be paused. Runs no Lua.
class Matcher {
 public:
  enum class Outcome : std::uint8_t { matched, failed, paused, broken };  // broken: see error()

  Matcher(const char* source, std::size_t size) : begin_(source), end_(source + size) {}

  void begin_match(const char* s, const char* pattern) {
    s_ = s;
    p_ = pattern;
    level_ = depth_ = 0;
    mode_ = Mode::next;
  }
  Outcome run();  // paused: the steps are used up
  // If every match of the pattern begins with a character of the same item, the end of that item; else null.
  const char* lead(const char* pattern);
  // The first position from `at` on where a match may begin: where `item` matches, the end of the text, or where the
  // steps are used up.
  const char* skip(const char* at, const char* item, const char* after);
  bool tired() const { return steps_left_ <= 0; }
  const char* match_end() const { return s_; }
  const char* error() const { return error_; }
  void refill() { steps_left_ = steps_per_piece; }
  void count(std::ptrdiff_t steps) { steps_left_ -= steps; }

  // Pushes all captures; without captures the whole match, if `begin` is given. -1: see error().
  int push_captures(lua_State* L, const char* begin) {
    const int count = level_ == 0 && begin ? 1 : level_;
    luaL_checkstack(L, count, "too many captures");
    for (int i = 0; i < count; ++i)
      if (!push_capture(L, i, begin)) return -1;
    return count;
  }

  bool push_capture(lua_State* L, int i, const char* begin) {
    Text text;
    if (!capture(i, begin, &text)) return false;
    if (text.data) lua_pushlstring(L, text.data, text.size);
    else lua_pushinteger(L, static_cast<lua_Integer>(text.size));
    return true;
  }

  struct Text {
    const char* data = nullptr;  // null: `size` is a position
    std::size_t size = 0;
  };
  // false: see error()
  bool capture(int i, const char* begin, Text* text) {
    if (i >= level_) {
      if (i != 0) return fail("invalid capture index");
      *text = {begin, static_cast<std::size_t>(s_ - begin)};
      return true;
    }
    const Capture& c = captures_[i];
    if (c.size == capture_unfinished) return fail("unfinished capture");
    if (c.size == capture_position) *text = {nullptr, static_cast<std::size_t>(c.begin - begin_ + 1)};
    else *text = {c.begin, static_cast<std::size_t>(c.size)};
    return true;
  }

  const char* begin() const { return begin_; }
  const char* end() const { return end_; }

 private:
  static constexpr int captures_max = 32;
  static constexpr int depth_max = 200;  // alternatives still to try; the same limit as LuaJIT's recursion
  static constexpr std::ptrdiff_t capture_unfinished = -1, capture_position = -2;
  static constexpr std::ptrdiff_t steps_per_piece = 1 << 16;  // well below a millisecond
  enum class Mode : std::uint8_t { next, most, balance };
  struct Capture {
    const char* begin;
    std::ptrdiff_t size;
  };
  // An alternative to take if the rest of the pattern does not match.
  struct Frame {
    enum class Kind : std::uint8_t { most, least, optional, open, close } kind;
    const char* s;     // most: where the repetition begins; least: where it ends; optional: where to continue
    const char* item;  // most, least: the repeated item
    const char* p;     // the rest of the pattern
    std::ptrdiff_t n;  // most: repetitions; close: index of the capture
  };

  bool fail(const char* text) {
    error_ = text;
    return false;
  }
  Outcome pause(const char* s, const char* p, Mode mode) {
    s_ = s;
    p_ = p;
    mode_ = mode;
    return Outcome::paused;
  }

  bool push(const Frame& f) {
    if (depth_ == depth_max - 1) return fail("pattern too complex");
    frames_[depth_++] = f;
    return true;
  }

  struct At {
    const char *s, *p;
    bool fits = true;  // whether the item before p matched
    Mode mode = Mode::next;
  };
  bool special(At* at);
  bool repeated(At* at, const char* after, bool one);
  bool single(At* at);
  const char* item_end(const char* p);
  bool at_frontier(const char* s, const char* p, const char* after) const;
  bool repeat_most();
  const char* find_balance(const char* s, char open, char close);
  bool retry(const char** s, const char** p);
  int open_capture() const;

  const char* begin_;
  const char* end_;
  const char *s_ = nullptr, *p_ = nullptr;
  const char* error_ = nullptr;
  std::ptrdiff_t steps_left_ = steps_per_piece;
  std::ptrdiff_t balance_ = 0;
  int level_ = 0, depth_ = 0;
  Mode mode_ = Mode::next;
  Capture captures_[captures_max];
  Frame frames_[depth_max];
};

}  // namespace rille::host
