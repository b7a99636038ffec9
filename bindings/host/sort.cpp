// Sorting without a comparator, in n log n steps whatever the input is, and so that it can be ended: Lua's own
// quicksort takes n^2 steps for some inputs.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "bindings/host/host.hpp"
#include "bindings/host/prelude.hpp"

namespace rille::host {

namespace {

constexpr int comparisons_per_check = 1 << 14;

class Checked {
 public:
  explicit Checked(lua_State* L) : L_(L) {}
  void count() {
    if (--left_ > 0) return;
    left_ = comparisons_per_check;
    LuaHost::of(L_).check(L_);
  }

 private:
  lua_State* L_;
  int left_ = comparisons_per_check;
};

struct Text {
  const char* data;
  std::size_t size;
};

// NaN before every other number, since std::sort needs an order.
bool number_before(double a, double b) { return a < b || (std::isnan(a) && !std::isnan(b)); }
bool text_before(const Text& a, const Text& b) {
  return std::string_view(a.data, a.size) < std::string_view(b.data, b.size);
}

// In memory that counts as Lua's.
template <class T, class Read, class Before, class Push>
void sort_values(lua_State* L, int n, Read read, Before before, Push push_one) {
  auto* values = static_cast<T*>(lua_newuserdata(L, static_cast<std::size_t>(n) * sizeof(T)));
  for (int i = 0; i < n; ++i) {
    lua_rawgeti(L, 1, i + 1);
    values[i] = read(L);
    lua_pop(L, 1);
  }
  Checked checked(L);
  std::sort(values, values + n, [&](const T& a, const T& b) {
    checked.count();
    return before(a, b);
  });
  for (int i = 0; i < n; ++i) {
    push_one(L, values[i]);
    lua_rawseti(L, 1, i + 1);
  }
}

// The text of a string stays where it is while the table holds the string: sorting runs no Lua, and no text is pushed
// before all are sorted. Writing them back would drop some, so a copy of the table holds them.
void sort_texts(lua_State* L, int n) {
  lua_createtable(L, n, 0);
  const int copy = lua_gettop(L);
  for (int i = 1; i <= n; ++i) {
    lua_rawgeti(L, 1, i);
    lua_rawseti(L, copy, i);
  }
  sort_values<Text>(
      L, n,
      [](lua_State* l) {
        Text t{};
        t.data = lua_tolstring(l, -1, &t.size);
        return t;
      },
      text_before, [](lua_State* l, const Text& t) { lua_pushlstring(l, t.data, t.size); });
}

}  // namespace

// (table) -> whether it was sorted: its elements are all numbers or all strings
int core_sort(lua_State* L) {
  lua_settop(L, 1);
  const int n = static_cast<int>(lua_objlen(L, 1));
  int type = LUA_TNIL;
  for (int i = 1; i <= n; ++i) {
    lua_rawgeti(L, 1, i);
    const int t = lua_type(L, -1);
    lua_pop(L, 1);
    if (i == 1) type = t;
    if (t != type || (t != LUA_TNUMBER && t != LUA_TSTRING)) {
      lua_pushboolean(L, 0);
      return 1;
    }
  }
  if (type == LUA_TSTRING) {
    sort_texts(L, n);
  } else if (n > 1) {
    sort_values<double>(
        L, n, [](lua_State* l) { return lua_tonumber(l, -1); }, number_before,
        [](lua_State* l, double v) { lua_pushnumber(l, v); });
  }
  lua_pushboolean(L, 1);
  return 1;
}

}  // namespace rille::host
