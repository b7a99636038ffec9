#include "bindings/host/pattern_match.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace rille::host {

namespace {

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

// p: the '['; last: the ']'
bool in_set(unsigned char c, const char* p, const char* last) {
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

bool matches_item(unsigned char c, const char* p, const char* item_end) {
  switch (*p) {
    case '.': return true;
    case escape: return in_class(c, byte(p[1]));
    case '[': return in_set(c, p, item_end - 1);
    default: return byte(*p) == c;
  }
}

}  // namespace

// Null: see error().
const char* Matcher::item_end(const char* p) {
  switch (*p++) {
    case escape:
      if (*p == '\0') return fail("malformed pattern (ends with '%')"), nullptr;
      return p + 1;
    case '[':
      if (*p == '^') ++p;
      do {
        if (*p == '\0') return fail("malformed pattern (missing ']')"), nullptr;
        if (*p++ == escape && *p != '\0') ++p;
      } while (*p != ']');
      return p + 1;
    default: return p;
  }
}

// %f[set]: whether the set begins to match at s.
bool Matcher::at_frontier(const char* s, const char* p, const char* after) const {
  const char before = s == begin_ ? '\0' : s[-1];
  return !in_set(byte(before), p, after - 1) && in_set(byte(*s), p, after - 1);
}

// Continues the repetition in the last frame. false: the steps are used up.
bool Matcher::repeat_most() {
  Frame& f = frames_[depth_ - 1];
  const char* const after = f.p - 1;
  const std::ptrdiff_t cost = 1 + (after - f.item) / 16, most = end_ - f.s;
  std::ptrdiff_t n = f.n;
  const std::ptrdiff_t stop = std::min(most, n + std::max<std::ptrdiff_t>(0, steps_left_) / cost);
  while (n < stop && matches_item(byte(f.s[n]), f.item, after)) ++n;
  steps_left_ -= (n - f.n) * cost;
  f.n = n;
  return n < stop || n == most;
}

// Continues %bxy after its first x. Null: there is no closing y, or the steps are used up.
const char* Matcher::find_balance(const char* s, char open, char close) {
  while (s < end_ && steps_left_ > 0) {
    --steps_left_;
    if (*s == close) {
      if (--balance_ == 0) return s + 1;
    } else if (*s == open) {
      ++balance_;
    }
    ++s;
  }
  s_ = s;
  return nullptr;
}

// Takes the next alternative. false: there is none left.
bool Matcher::retry(const char** s, const char** p) {
  while (depth_ > 0) {
    Frame& f = frames_[depth_ - 1];
    switch (f.kind) {
      case Frame::Kind::most:
        if (f.n == 0) break;
        *s = f.s + --f.n;
        *p = f.p;
        return true;
      case Frame::Kind::least:
        if (f.s >= end_ || !matches_item(byte(*f.s), f.item, f.p - 1)) break;
        steps_left_ -= 1 + (f.p - f.item) / 16;
        *s = ++f.s;
        *p = f.p;
        return true;
      case Frame::Kind::optional:
        *s = f.s;
        *p = f.p;
        --depth_;
        return true;
      case Frame::Kind::open: --level_; break;
      case Frame::Kind::close: captures_[f.n].size = capture_unfinished; break;
    }
    --depth_;
  }
  return false;
}

// Index of the last open capture; -1: none is open.
int Matcher::open_capture() const {
  int open = level_ - 1;
  while (open >= 0 && captures_[open].size != capture_unfinished) --open;
  return open;
}

const char* Matcher::lead(const char* pattern) {
  const char c = *pattern;
  if (c == '\0' || c == '(' || c == ')' || (c == '$' && pattern[1] == '\0')) return nullptr;
  if (c == escape && (pattern[1] == 'b' || pattern[1] == 'f' || is_digit_char(pattern[1]))) return nullptr;
  const char* const after = item_end(pattern);
  return after && *after != '*' && *after != '?' && *after != '-' ? after : nullptr;
}

const char* Matcher::skip(const char* at, const char* item, const char* after) {
  const std::ptrdiff_t cost = 1 + (after - item) / 16;
  const char* const stop = at + std::min(end_ - at, 1 + std::max<std::ptrdiff_t>(0, steps_left_) / cost);
  const char* to = at;
  while (to < stop && !matches_item(byte(*to), item, after)) ++to;
  steps_left_ -= (to - at) * cost;
  return to;
}

// Items that are not a single character: captures, %b, %f, %1. false: see error().
bool Matcher::special(At* at) {
  const char *&s = at->s, *&p = at->p;
  if (*p == '(') {
    const bool position = p[1] == ')';
    if (level_ >= captures_max) return fail("too many captures");
    captures_[level_++] = {s, position ? capture_position : capture_unfinished};
    p += position ? 2 : 1;
    return push({Frame::Kind::open, nullptr, nullptr, nullptr, 0});
  }
  if (*p == ')') {
    const int open = open_capture();
    if (open < 0) return fail("invalid pattern capture");
    captures_[open].size = s - captures_[open].begin;
    ++p;
    return push({Frame::Kind::close, nullptr, nullptr, nullptr, open});
  }
  if (p[1] == 'b') {
    if (p[2] == '\0' || p[3] == '\0') return fail("unbalanced pattern");
    at->fits = s < end_ && *s == p[2];
    ++s;
    balance_ = 1;
    at->mode = at->fits ? Mode::balance : Mode::next;
    return true;
  }
  if (p[1] == 'f') {
    if (p[2] != '[') return fail("missing '[' after '%f' in pattern");
    const char* const after = item_end(p + 2);
    if (!after) return false;
    count((after - p) / 16);
    at->fits = at_frontier(s, p + 2, after);
    p = after;
    return true;
  }
  const int i = p[1] - '1';
  if (i < 0 || i >= level_ || captures_[i].size == capture_unfinished) return fail("invalid capture index");
  const auto size = static_cast<std::size_t>(captures_[i].size);  // of a position: too large for any subject
  at->fits = static_cast<std::size_t>(end_ - s) >= size;
  if (!at->fits) return true;
  count(static_cast<std::ptrdiff_t>(size / 16));
  at->fits = std::memcmp(captures_[i].begin, s, size) == 0;
  s += size;
  p += 2;
  return true;
}

// A single character that ?, *, + or - follows; `one`: it matches at s. false: see error().
bool Matcher::repeated(At* at, const char* after, bool one) {
  using Kind = Frame::Kind;
  const char *s = at->s, *p = at->p;
  switch (*after) {
    case '?':
      at->p = after + 1;
      if (!one) return true;
      ++at->s;
      return push({Kind::optional, s, nullptr, after + 1, 0});
    case '-': at->p = after + 1; return push({Kind::least, s, p, after + 1, 0});
    case '+':
      at->fits = one;
      if (!one) return true;
      ++s;
      [[fallthrough]];
    default: at->mode = Mode::most; return push({Kind::most, s, p, after + 1, 0});
  }
}

// false: see error()
bool Matcher::single(At* at) {
  const char* const after = item_end(at->p);
  if (!after) return false;
  if (after - at->p > 16) count((after - at->p) / 16);
  const bool one = at->s < end_ && matches_item(byte(*at->s), at->p, after);
  if (*after == '?' || *after == '*' || *after == '+' || *after == '-') return repeated(at, after, one);
  at->fits = one;
  ++at->s;
  at->p = after;
  return true;
}

Matcher::Outcome Matcher::run() {
  At at{s_, p_, true, std::exchange(mode_, Mode::next)};
  while (true) {
    if (!at.fits) {
      if (!retry(&at.s, &at.p)) return Outcome::failed;
      at.fits = true;
    }
    if (steps_left_ <= 0) return pause(at.s, at.p, at.mode);
    --steps_left_;
    if (at.mode == Mode::most) {
      if (!repeat_most()) return pause(at.s, at.p, Mode::most);
      const Frame& f = frames_[depth_ - 1];
      at.s = f.s + f.n;
      at.p = f.p;
      at.mode = Mode::next;
      continue;
    }
    if (at.mode == Mode::balance) {
      const char* const after = find_balance(at.s, at.p[2], at.p[3]);
      if (!after && s_ < end_) return pause(s_, at.p, Mode::balance);
      at = {after, at.p + 4, after != nullptr, Mode::next};
      continue;
    }
    bool well = true;
    switch (*at.p) {
      case '\0': s_ = at.s; return Outcome::matched;
      case '(':
      case ')': well = special(&at); break;
      case '$':
        if (at.p[1] != '\0') {
          well = single(&at);
        } else {
          at.fits = at.s == end_;
          if (at.fits) ++at.p;
        }
        break;
      case escape:
        well = at.p[1] == 'b' || at.p[1] == 'f' || is_digit_char(at.p[1]) ? special(&at) : single(&at);
        break;
      default: well = single(&at);
    }
    if (!well) return Outcome::broken;
  }
}

}  // namespace rille::host
