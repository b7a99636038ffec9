// Tensor methods for shapes; the results are views where the memory layout allows. Dimensions and positions count
// from 1; -1 is the last.
#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

namespace {

int shape(lua_State* L) {
  push_shape(L, check_self(L, "shape", 1).shape());
  return 1;
}

int size(lua_State* L) {
  Tensor& t = check_self(L, "size", 2);
  int dim = check_dim(L, 2, "size");
  if (dim >= t.rank() || dim < -t.rank())
    raise_invalid(L, fmt::format("size: {} has no dimension {} ({})", tensor::to_string(t.shape()), lua_tonumber(L, 2),
                                 script_position(L)));
  push(L, t.size(dim));
  return 1;
}

int rank(lua_State* L) {
  push(L, check_self(L, "dim", 1).rank());
  return 1;
}

int numel(lua_State* L) {
  push(L, check_self(L, "numel", 1).count());
  return 1;
}

Result<int> reshape(lua_State* L) {
  Tensor& t = check_tensor(L, 1, "reshape");
  return give(L, tensor::reshape(t, check_sizes(L, 2, "reshape")));
}

Result<int> view(lua_State* L) {
  Tensor& t = check_tensor(L, 1, "view");
  return give(L, tensor::view(t, check_sizes(L, 2, "view")));
}

Result<int> expand(lua_State* L) {
  Tensor& t = check_tensor(L, 1, "expand");
  return give(L, tensor::expand(t, check_sizes(L, 2, "expand")));
}

Result<int> permute(lua_State* L) {
  Tensor& t = check_tensor(L, 1, "permute");
  Dims order = check_sizes(L, 2, "permute");
  for (int i = 0; i < order.n; ++i) order[i] = dim_from(L, static_cast<double>(order[i]), "permute");
  return give(L, tensor::permute(t, order));
}

// transpose() swaps the last two dimensions; transpose(a, b) swaps dimensions a and b.
Result<int> transpose(lua_State* L) {
  Tensor& t = check_self(L, "transpose", 3);
  bool last = lua_isnoneornil(L, 2);
  int a = last ? -2 : check_dim(L, 2, "transpose"), b = last ? -1 : check_dim(L, 3, "transpose");
  return give(L, tensor::transpose(t, a, b));
}

// Reads a position in a dimension of size `n` that counts from 1, or backwards from -1.
std::int64_t check_position(lua_State* L, int index, const char* what, std::int64_t n) {
  std::int64_t i = check_integer(L, index, what);
  if (i == 0 || i > n || i < -n)
    raise_invalid(
        L, fmt::format("{}: position {} is outside of a dimension of size {} ({})", what, i, n, script_position(L)),
        "positions count from 1; -1 is the last");
  return i > 0 ? i - 1 : n + i;
}

std::int64_t size_of(lua_State* L, const Tensor& t, int dim, const char* what) {
  if (dim >= t.rank() || dim < -t.rank())
    raise_invalid(
        L, fmt::format("{}: {} has no such dimension ({})", what, tensor::to_string(t.shape()), script_position(L)),
        "dimensions count from 1; -1 is the last");
  return t.size(dim);
}

Result<int> narrow(lua_State* L) {  // t:narrow(dim, start, length)
  Tensor& t = check_self(L, "narrow", 4);
  int dim = check_dim(L, 2, "narrow");
  std::int64_t start = check_position(L, 3, "narrow", size_of(L, t, dim, "narrow"));
  return give(L, tensor::narrow(t, dim, start, check_integer(L, 4, "narrow's length")));
}

Result<int> select(lua_State* L) {  // t:select(dim, position)
  Tensor& t = check_self(L, "select", 3);
  int dim = check_dim(L, 2, "select");
  return give(L, tensor::select(t, dim, check_position(L, 3, "select", size_of(L, t, dim, "select"))));
}

Result<int> squeeze(lua_State* L) {
  Tensor& t = check_self(L, "squeeze", 2);
  return give(L, tensor::squeeze(t, check_dim(L, 2, "squeeze")));
}

Result<int> unsqueeze(lua_State* L) {
  Tensor& t = check_self(L, "unsqueeze", 2);
  return give(L, tensor::unsqueeze(t, check_dim(L, 2, "unsqueeze")));
}

Result<int> contiguous(lua_State* L) { return give(L, tensor::contiguous(check_self(L, "contiguous", 1))); }
Result<int> clone(lua_State* L) { return give(L, tensor::clone(check_self(L, "clone", 1))); }

// a:cat({b, c}, dim): concatenates a, b and c.
Result<int> cat(lua_State* L) {
  std::vector<Tensor> parts{check_self(L, "cat", 3)};
  const auto others = check_tensors(L, 2, "cat");
  parts.insert(parts.end(), others.begin(), others.end());
  return give(L, tensor::cat(parts, lua_isnoneornil(L, 3) ? 0 : check_dim(L, 3, "cat")));
}

Result<int> chunk(lua_State* L) {  // t:chunk(number of chunks, dim) -> the chunks
  Tensor& t = check_self(L, "chunk", 3);
  std::int64_t pieces = check_integer(L, 2, "chunk's number of pieces");
  if (pieces < 1 || pieces > 200) raise_invalid(L, fmt::format("chunk: {} pieces: expected 1 to 200", pieces));
  auto parts = tensor::chunk(t, static_cast<int>(pieces), lua_isnoneornil(L, 3) ? 0 : check_dim(L, 3, "chunk"));
  if (!parts) return at_line(L, std::move(parts).error());
  if (!lua_checkstack(L, static_cast<int>(parts->size()) + 4))
    raise_invalid(L, "chunk: too many pieces", "Lua cannot hold so many results: use fewer pieces");
  for (Tensor& part : *parts) push_tensor(L, std::move(part));
  return static_cast<int>(parts->size());
}

// Methods such as t:zeros_like({dtype =}), which make a tensor with the shape, dtype and device of t.
struct Like {
  const char* name;
  Result<Tensor> (*fn)(Graph&, const Dims&, DType);
};
constexpr Like zeros_like{"zeros_like", tensor::zeros}, ones_like{"ones_like", tensor::ones},
    rand_like{"rand_like", tensor::rand}, randn_like{"randn_like", tensor::randn};

template <const Like& M>
Result<int> like(lua_State* L) {
  Tensor& t = check_self(L, M.name, 2);
  check_options(L, 2, M.name, {"dtype"});
  return give(L, M.fn(t.graph(), t.shape(), lua_istable(L, 2) ? option_dtype(L, 2, t.dtype()) : t.dtype()));
}

Result<int> full_like(lua_State* L) {  // t:full_like(value, {dtype =})
  Tensor& t = check_self(L, "full_like", 3);
  double value = check_number(L, 2, "full_like's value");
  check_options(L, 3, "full_like", {"dtype"});
  DType dtype = lua_istable(L, 3) ? option_dtype(L, 3, t.dtype()) : t.dtype();
  return give(L, tensor::full(t.graph(), t.shape(), value, dtype));
}

}  // namespace

std::vector<Function> shape_methods() {
  return {{"zeros_like", bind<like<zeros_like>>},
          {"ones_like", bind<like<ones_like>>},
          {"rand_like", bind<like<rand_like>>},
          {"randn_like", bind<like<randn_like>>},
          {"full_like", bind<full_like>},
          {"shape", bind<shape>},
          {"size", bind<size>},
          {"dim", bind<rank>},
          {"numel", bind<numel>},
          {"reshape", bind<reshape>},
          {"view", bind<view>},
          {"expand", bind<expand>},
          {"permute", bind<permute>},
          {"transpose", bind<transpose>},
          {"narrow", bind<narrow>},
          {"select", bind<select>},
          {"squeeze", bind<squeeze>},
          {"unsqueeze", bind<unsqueeze>},
          {"contiguous", bind<contiguous>},
          {"clone", bind<clone>},
          {"cat", bind<cat>},
          {"chunk", bind<chunk>}};
}

}  // namespace rille::lua
