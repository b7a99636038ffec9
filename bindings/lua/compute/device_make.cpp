// Methods that create tensors. In dev:randn{2, 3, dtype = "f32"} numbers give the shape and named fields are options.
#include "bindings/lua/compute/device_make.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/compute/device/owner.hpp"
#include "runtime/compute/tensor/owner.hpp"

namespace rille::lua {

namespace {

// Rewrites the arguments of PyTorch style, dev:zeros(2, 3) or dev:zeros({2, 3}, {dtype = "i64"}), into the documented
// form dev:zeros{2, 3, dtype = "i64"}.
void gather(lua_State* L, const char* what) {
  while (lua_gettop(L) > 2 && lua_isnil(L, -1)) lua_pop(L, 1);
  const int top = lua_gettop(L);
  if (top < 2 || (top == 2 && lua_istable(L, 2))) return;
  const bool options_last = top > 2 && lua_istable(L, top);
  lua_newtable(L);
  const int all = top + 1;
  int listed = 0;
  auto copy = [&](int from) {
    for (lua_pushnil(L); lua_next(L, from);) {
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_settable(L, all);
    }
  };
  for (int i = 2; i <= top; ++i) {
    const bool names = i == top && options_last;
    const bool fits = names || (lua_istable(L, i) ? i == 2 && top == 3 : lua_isnumber(L, i) && !lua_istable(L, 2));
    if (!fits)
      raise_invalid(L, fmt::format("{}: argument {} is {} ({})", what, i - 1, describe(L, i), script_position(L)),
                    fmt::format("dev:{}{{2, 3, dtype = \"f32\"}}: put sizes and options in one table", what));
    if (names && lua_objlen(L, i) > 0)
      raise_invalid(
          L,
          fmt::format("{}: the second table, which is for options, has numbers in it ({})", what, script_position(L)),
          fmt::format("dev:{}{{2, 3, dtype = \"f32\"}}: put sizes and options in one table", what));
    if (lua_istable(L, i)) {
      copy(i);
    } else {
      lua_pushvalue(L, i);
      lua_rawseti(L, all, ++listed);
    }
  }
  lua_replace(L, 2);
  lua_settop(L, 2);
}

// Pushes a new tensor. Memory reports show the tensor's owner as "randn at train.lua:12".
Result<int> made(lua_State* L, const char* verb, Result<Tensor> t) {
  if (t) tensor::own(*t, tensor::owner_here(t->graph(), verb));
  if (t && lua_istable(L, 2) && option_bool(L, 2, "requires_grad", false)) RILLE_CHECK(t->set_requires_grad(true));
  return give(L, std::move(t));
}

struct Maker {
  const char* name;
  Result<Tensor> (*fn)(Graph&, const Dims&, DType);
};

template <const Maker& M>
Result<int> make(lua_State* L) {
  Graph& g = device_graph(L, 1, M.name);
  gather(L, M.name);
  if (lua_istable(L, 2)) check_known(L, 2, M.name, {"dtype", "requires_grad"}, true);
  return made(L, M.name, M.fn(g, check_shape(L, 2, M.name), option_dtype(L, 2, DType::f32)));
}

constexpr Maker zeros_{"zeros", tensor::zeros}, ones_{"ones", tensor::ones}, rand_{"rand", tensor::rand},
    randn_{"randn", tensor::randn};

Result<int> full(lua_State* L) {  // dev:full{2, 3, value = 7}
  Graph& g = device_graph(L, 1, "full");
  gather(L, "full");
  check_table(L, 2, "full");
  check_known(L, 2, "full", {"value", "dtype", "requires_grad"}, true);
  auto value = option_number(L, 2, "value");
  if (!value) raise_invalid(L, "full: the value is missing", "dev:full{2, 3, value = 7}");
  return made(L, "full", tensor::full(g, check_shape(L, 2, "full"), *value, option_dtype(L, 2, DType::f32)));
}

Result<int> randint(lua_State* L) {  // dev:randint{2, 3, low = 0, high = 10}
  Graph& g = device_graph(L, 1, "randint");
  gather(L, "randint");
  check_table(L, 2, "randint");
  check_known(L, 2, "randint", {"low", "high", "dtype"}, true);
  auto high = option_number(L, 2, "high");
  if (!high)
    raise_invalid(L, "randint: the upper bound is missing",
                  "dev:randint{2, 3, low = 0, high = 10}: the bound itself is not drawn");
  auto low = static_cast<std::int64_t>(option_number(L, 2, "low").value_or(0));
  return made(L, "randint",
              tensor::randint(g, low, static_cast<std::int64_t>(*high), check_shape(L, 2, "randint"),
                              option_dtype(L, 2, DType::i64)));
}

Result<int> randperm(lua_State* L) {  // dev:randperm(n), dev:randperm{n}
  Graph& g = device_graph(L, 1, "randperm");
  gather(L, "randperm");
  if (lua_istable(L, 2)) check_known(L, 2, "randperm", {"dtype"}, true);
  const Dims shape = check_shape(L, 2, "randperm");
  if (shape.n != 1)
    raise_invalid(L, fmt::format("randperm: expected one number, got {}", tensor::to_string(shape)), "dev:randperm(n)");
  const DType dtype = option_dtype(L, 2, DType::i64);
  auto order = tensor::randperm(g, shape[0]);
  return made(L, "randperm", order && dtype != DType::i64 ? tensor::cast(*order, dtype) : std::move(order));
}

Result<int> arange(lua_State* L) {  // dev:arange{stop}, {start, stop} or {start, stop, step}; stop is excluded
  Graph& g = device_graph(L, 1, "arange");
  gather(L, "arange");
  check_table(L, 2, "arange");
  check_known(L, 2, "arange", {"dtype"}, true);
  double v[3] = {0, 0, 1};
  std::size_t n = lua_objlen(L, 2);
  if (n < 1 || n > 3) raise_invalid(L, "arange: expected one to three numbers", "dev:arange{start, stop, step}");
  for (std::size_t i = 0; i < n; ++i) {
    lua_rawgeti(L, 2, static_cast<int>(i + 1));
    v[n == 1 ? 1 : i] = check_number(L, -1, "arange");
    lua_pop(L, 1);
  }
  bool whole = v[0] == std::floor(v[0]) && v[1] == std::floor(v[1]) && v[2] == std::floor(v[2]);
  const DType dtype = option_dtype(L, 2, whole ? DType::i64 : DType::f32);
  return made(L, "arange", tensor::arange(g, v[0], v[1], v[2], dtype));
}

Result<int> linspace(lua_State* L) {  // dev:linspace{start, stop, count}; stop is included
  Graph& g = device_graph(L, 1, "linspace");
  gather(L, "linspace");
  check_table(L, 2, "linspace");
  check_known(L, 2, "linspace", {"dtype"}, true);
  double v[3];
  if (lua_objlen(L, 2) != 3) raise_invalid(L, "linspace: expected three numbers", "dev:linspace{start, stop, count}");
  for (int i = 0; i < 3; ++i) {
    lua_rawgeti(L, 2, i + 1);
    v[i] = i < 2 ? check_number(L, -1, "linspace") : double(check_integer(L, -1, "linspace's count"));
    lua_pop(L, 1);
  }
  const DType dtype = option_dtype(L, 2, DType::f32);
  return made(L, "linspace", tensor::linspace(g, v[0], v[1], std::int64_t(v[2]), dtype));
}

Result<int> eye(lua_State* L) {  // dev:eye{rows} or {rows, columns}
  Graph& g = device_graph(L, 1, "eye");
  gather(L, "eye");
  check_table(L, 2, "eye");
  check_known(L, 2, "eye", {"dtype", "requires_grad"}, true);
  Dims size = check_shape(L, 2, "eye");
  if (size.n < 1 || size.n > 2) raise_invalid(L, "eye: expected one or two sizes", "dev:eye{3}, dev:eye{3, 4}");
  return made(L, "eye", tensor::eye(g, size[0], size[size.n - 1], option_dtype(L, 2, DType::f32)));
}

Result<int> rope_angles(lua_State* L) {  // dev:rope_angles{positions, width, base = 10000} -> cosines, sines
  Graph& g = device_graph(L, 1, "rope_angles");
  gather(L, "rope_angles");
  check_table(L, 2, "rope_angles");
  check_known(L, 2, "rope_angles", {"base", "dtype"}, true);
  Dims size = check_shape(L, 2, "rope_angles");
  if (size.n != 2) raise_invalid(L, "rope_angles: expected two numbers", "dev:rope_angles{positions, width}");
  double base = option_number(L, 2, "base").value_or(10000);
  auto angles = tensor::rope_angles(g, size[0], size[1], base, option_dtype(L, 2, DType::f32));
  if (!angles) return at_line(L, std::move(angles).error());
  return push_tensor(L, std::move(angles->cos)) + push_tensor(L, std::move(angles->sin));
}

// Raises unless the table is a list without holes or named fields: values after a nil would be dropped silently.
void check_list(lua_State* L, std::int64_t n) {
  std::int64_t entries = 0;
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) ++entries;
  if (entries != n)
    raise_invalid(L,
                  fmt::format("tensor: a table with {} values, of which only {} form a list from 1 on ({})", entries, n,
                              script_position(L)),
                  "the list must have no nil and no names; options go into a second table: dev:tensor({ 1, 2 }, { "
                  "dtype = \"i64\" })");
}

// Called at the first number: counts and reserves memory for all. A list that is an element of many lists can stand for
// more numbers than the memory holds.
MemoryHeld make_room(lua_State* L, const std::vector<std::int64_t>& shape, std::vector<double>& out) {
  const Dims dims = value_or_raise(L, tensor::make_dims(shape));
  const auto& use = device_graph(L, 1, "tensor").device()->counted_in();
  const auto bytes = static_cast<std::int64_t>(sizeof(double)) * dims.count();
  MemoryHeld held = value_or_raise(L, MemoryHeld::take(use, MemoryUse::Part::tensors, bytes));
  out.reserve(static_cast<std::size_t>(dims.count()));
  return held;
}

struct Nested {
  std::vector<std::int64_t> shape;
  std::vector<double> numbers;
  MemoryHeld held;
  bool booleans = true;
  int lists = 0;
};
constexpr int lists_max = 20'000'000;  // a list that is an element of several lists counts each time

// Flattens nested lists. The first element at each depth gives the shape; unequal lengths raise.
void read_nested(lua_State* L, int dim, Nested& into) {
  auto& [shape, out, held, booleans, lists] = into;
  if (!lua_istable(L, -1)) {
    if (out.empty()) held = make_room(L, shape, out);
    if (dim != static_cast<int>(shape.size()))
      raise_invalid(L, fmt::format("tensor: a list was expected in dimension {}, got {}", dim + 1, describe(L, -1)));
    booleans = booleans && lua_isboolean(L, -1);
    if (lua_isboolean(L, -1)) out.push_back(lua_toboolean(L, -1));
    else out.push_back(check_number(L, -1, "tensor's values"));
    return;
  }
  LuaHost::of(L).check(L);  // once per list, since walking a long table of nils takes milliseconds
  if (++lists > lists_max) raise_invalid(L, fmt::format("tensor: there are more than {} lists", lists_max));
  auto n = static_cast<std::int64_t>(lua_objlen(L, -1));
  if (dim == kernels::max_rank) value_or_raise(L, tensor::make_dims(std::vector<std::int64_t>(shape.size() + 1, 1)));
  check_list(L, n);
  if (dim == static_cast<int>(shape.size()) && out.empty()) shape.push_back(n);
  if (dim >= static_cast<int>(shape.size()) || shape[static_cast<std::size_t>(dim)] != n)
    raise_invalid(L, fmt::format("tensor: the lists of dimension {} differ in length", dim + 1));
  luaL_checkstack(L, 4, "tensor");
  for (std::int64_t i = 1; i <= n; ++i) {
    lua_rawgeti(L, -1, static_cast<int>(i));
    read_nested(L, dim + 1, into);
    lua_pop(L, 1);
  }
}

// Raises if a number does not fit the integer dtype; fractions are truncated later, as in a cast.
Result<void> check_range(DType dtype, const std::vector<double>& numbers) {
  if (is_floating(dtype) || dtype == DType::boolean) return success();
  const double high = dtype == DType::u8 ? 256 : dtype == DType::i8 ? 128 : dtype == DType::i32 ? 0x1p31 : 0x1p63;
  const double low = dtype == DType::u8 ? 0 : -high;  // the largest value that fits is high - 1
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if ((numbers[i] >= low || numbers[i] > low - 1) && numbers[i] < high) continue;
    return make_error(
        ErrorKind::invalid, fmt::format("tensor: {} at position {} does not fit {}", numbers[i], i + 1, name_of(dtype)),
        dtype == DType::i64 ? "use a floating type: dtype = \"f64\"" : "use a larger type: dtype = \"i64\"");
  }
  return success();
}

Result<int> from_table(lua_State* L) {  // dev:tensor({{1, 2}, {3, 4}}, {dtype =}), dev:tensor(3)
  Graph& g = device_graph(L, 1, "tensor");
  check_options(L, 3, "tensor", {"dtype", "requires_grad"});
  Nested read;
  lua_pushvalue(L, 2);
  read_nested(L, 0, read);
  lua_pop(L, 1);
  const auto& numbers = read.numbers;
  RILLE_TRY(Dims dims, tensor::make_dims(read.shape));
  DType dtype = option_dtype(L, 3, read.booleans && !numbers.empty() ? DType::boolean : DType::f32);
  if (auto fits = check_range(dtype, numbers); !fits) return at_line(L, std::move(fits).error());
  const device::OwnedBy owner(tensor::owner_here(g, "data from the host"));
  auto t = tensor::from_numbers(g, dims, dtype, numbers);
  if (t && lua_istable(L, 3) && option_bool(L, 3, "requires_grad", false)) RILLE_CHECK(t->set_requires_grad(true));
  return give(L, std::move(t));
}

Result<int> from_bytes(lua_State* L) {  // dev:from_bytes(t:bytes(), {2, 3}, "f32")
  Graph& g = device_graph(L, 1, "from_bytes");
  const std::string_view bytes = check_text(L, 2, "from_bytes");
  RILLE_TRY(const DType dtype, parse_dtype(lua_isnoneornil(L, 4) ? "u8" : check_text(L, 4, "from_bytes' dtype")));
  Dims shape;
  if (lua_isnoneornil(L, 3)) shape.push(static_cast<std::int64_t>(bytes.size() / size_bytes(dtype)));
  else shape = check_shape(L, 3, "from_bytes");
  const auto wanted = static_cast<std::size_t>(shape.count()) * size_bytes(dtype);
  if (bytes.size() != wanted)
    raise_invalid(L,
                  fmt::format("from_bytes: {} bytes were given for {}{}, which has {} ({})", bytes.size(),
                              name_of(dtype), tensor::to_string(shape), wanted, script_position(L)),
                  "dev:from_bytes(t:bytes(), t:shape(), t.dtype)");
  if (dtype == DType::boolean && std::any_of(bytes.begin(), bytes.end(), [](unsigned char c) { return c > 1; }))
    raise_invalid(L, fmt::format("from_bytes: a byte of a bool tensor must be 0 or 1 ({})", script_position(L)),
                  "read them as \"u8\"");
  const device::OwnedBy owner(tensor::owner_here(g, "data from the host"));
  return give(L, tensor::from_bytes(g, shape, dtype, bytes.data(), bytes.size()));
}

}  // namespace

std::vector<Function> making_methods() {
  return {{"zeros", bind<make<zeros_>>},
          {"ones", bind<make<ones_>>},
          {"rand", bind<make<rand_>>},
          {"randn", bind<make<randn_>>},
          {"full", bind<full>},
          {"randint", bind<randint>},
          {"randperm", bind<randperm>},
          {"arange", bind<arange>},
          {"linspace", bind<linspace>},
          {"eye", bind<eye>},
          {"rope_angles", bind<rope_angles>},
          {"tensor", bind<from_table>},
          {"from_bytes", bind<from_bytes>}};
}

}  // namespace rille::lua
