// Sorting without a comparator, in O(n log n) steps for any input (Lua's own quicksort takes n^2 for some), and in
// pieces of about a millisecond, between which the code may give way or be ended.
#include <algorithm>
#include <cmath>
#include <new>
#include <string_view>

#include "bindings/host/host.hpp"
#include "bindings/host/prelude.hpp"

namespace rille::host {

namespace {

constexpr int at_once = 2048;    // elements that one piece sorts
constexpr int per_piece = 8192;  // elements that one piece reads, merges or writes

struct Text {
  const char* data;
  std::size_t size;
};

// NaN before every other number, since std::sort needs an order.
bool is_before(double a, double b) { return a < b || (std::isnan(a) && !std::isnan(b)); }
bool is_before(const Text& a, const Text& b) {
  return std::string_view(a.data, a.size) < std::string_view(b.data, b.size);
}

double read(lua_State* L, double*) { return lua_tonumber(L, -1); }
Text read(lua_State* L, Text*) {
  Text t{};
  t.data = lua_tolstring(L, -1, &t.size);
  return t;
}
void write(lua_State* L, double v) { lua_pushnumber(L, v); }
void write(lua_State* L, const Text& t) { lua_pushlstring(L, t.data, t.size); }

// A merge sort. The object and its two arrays of n elements share one block that counts as Lua's memory.
struct Sorter {
  enum class Stage { reading, sorting, merging, writing };
  int n = 0;
  bool texts = false;
  Stage stage = Stage::reading;
  int at = 0;               // index of the next element in this stage
  int width = at_once;      // length of the sorted runs that are merged
  int left = 0, right = 0;  // next element of each run
  bool swapped = false;     // the values are in the second array

  template <class T>
  T* values(bool second) {
    return reinterpret_cast<T*>(this + 1) + (second ? n : 0);
  }
};
static_assert(sizeof(Sorter) % alignof(Text) == 0 && alignof(Text) == alignof(double));

constexpr int table_at = 2, hold_at = 3;  // arguments of core_sort_piece

// A string's text stays in place while a table holds the string. `hold` does, because writing the sorted values back
// overwrites strings that are still to be written.
template <class T>
bool read_piece(lua_State* L, Sorter& s) {
  const int type = s.texts ? LUA_TSTRING : LUA_TNUMBER;
  for (const int end = std::min(s.n, s.at + per_piece); s.at < end; ++s.at) {
    lua_rawgeti(L, table_at, s.at + 1);
    if (lua_type(L, -1) != type) return false;
    s.values<T>(false)[s.at] = read(L, static_cast<T*>(nullptr));
    if (s.texts) lua_rawseti(L, hold_at, s.at + 1);
    else lua_pop(L, 1);
  }
  return true;
}

template <class T>
void merge_piece(Sorter& s) {
  const T* from = s.values<T>(s.swapped);
  T* to = s.values<T>(!s.swapped);
  for (int left = per_piece; left > 0 && s.at < s.n;) {
    const int low = s.at / (2 * s.width) * (2 * s.width);
    const int middle = std::min(s.n, low + s.width), high = std::min(s.n, middle + s.width);
    if (s.at == low) s.left = low, s.right = middle;
    for (; left > 0 && s.at < high; --left, ++s.at) {
      const bool second = s.left == middle || (s.right < high && is_before(from[s.right], from[s.left]));
      to[s.at] = from[second ? s.right++ : s.left++];
    }
  }
}

template <class T>
void write_piece(lua_State* L, Sorter& s) {
  for (const int end = std::min(s.n, s.at + per_piece); s.at < end; ++s.at) {
    write(L, s.values<T>(s.swapped)[s.at]);
    lua_rawseti(L, table_at, s.at + 1);
  }
}

// Whether the elements can be sorted.
template <class T>
bool sort_piece(lua_State* L, Sorter& s) {
  switch (s.stage) {
    case Sorter::Stage::reading:
      if (!read_piece<T>(L, s)) return false;
      break;
    case Sorter::Stage::sorting: {
      T* const values = s.values<T>(false);
      const int end = std::min(s.n, s.at + at_once);
      std::sort(values + s.at, values + end, [](const T& a, const T& b) { return is_before(a, b); });
      s.at = end;
      break;
    }
    case Sorter::Stage::merging: merge_piece<T>(s); break;
    case Sorter::Stage::writing: write_piece<T>(L, s); break;
  }
  if (s.at < s.n) return true;
  s.at = 0;
  if (s.stage == Sorter::Stage::merging) {
    s.swapped = !s.swapped;
    if (s.width >= (s.n + 1) / 2) s.stage = Sorter::Stage::writing;
    else s.width *= 2;
    return true;
  }
  if (s.stage == Sorter::Stage::writing) s.at = s.n;
  else if (s.stage == Sorter::Stage::reading) s.stage = Sorter::Stage::sorting;
  else s.stage = s.n > s.width ? Sorter::Stage::merging : Sorter::Stage::writing;
  return true;
}

}  // namespace

namespace {

// Pushes whether the elements were sorted once that is known, else nil.
bool piece(lua_State* L, Sorter& s) {
  const bool can = s.texts ? sort_piece<Text>(L, s) : sort_piece<double>(L, s);
  if (can && !(s.stage == Sorter::Stage::writing && s.at == s.n)) return false;
  lua_pushboolean(L, can);
  return true;
}

}  // namespace

// (sorter, table, hold) -> whether its elements are sorted now: they are all numbers or all strings; nil: call again
int core_sort_piece(lua_State* L) {
  lua_settop(L, 3);
  LuaHost::of(L).check(L);
  return piece(L, *static_cast<Sorter*>(lua_touserdata(L, 1))) ? 1 : 0;
}

// (table) -> as core_sort_piece, and the other arguments of that function
int core_sort(lua_State* L) {
  lua_settop(L, 1);
  const int n = static_cast<int>(lua_objlen(L, 1));
  lua_rawgeti(L, 1, 1);
  const int type = lua_type(L, -1);
  lua_settop(L, 1);
  if (n == 0 || (type != LUA_TSTRING && type != LUA_TNUMBER)) {
    lua_pushboolean(L, n == 0);
    return 1;
  }
  const bool texts = type == LUA_TSTRING, many = n > at_once;
  const std::size_t values = static_cast<std::size_t>(n) * (many ? 2 : 1);
  auto* s = new (lua_newuserdata(L, sizeof(Sorter) + values * (texts ? sizeof(Text) : sizeof(double)))) Sorter;
  s->n = n;
  s->texts = texts;
  lua_insert(L, 1);
  if (texts) lua_createtable(L, n, 0);
  else lua_pushnil(L);
  if (!many) {
    while (!piece(L, *s)) {}
    return 1;
  }
  lua_pushnil(L);
  lua_insert(L, 1);
  return 4;  // nil, sorter, table, hold
}

}  // namespace rille::host
