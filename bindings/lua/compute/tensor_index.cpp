// Tensor methods that index, scatter and sort elements, and slices: t[2], t[{ {1, 3}, {} }]. Dimensions and positions
// count from 1; indices stored in tensors count from 0.
#include <cmath>

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

namespace {

Result<int> gather(lua_State* L) {  // t:gather(dim, index)
  Tensor& a = check_self(L, "gather", 3);
  tensor_state(L);
  int dim = check_dim(L, 2, "gather");
  return give(L, tensor::gather(a, dim, check_tensor(L, 3, "gather's numbers")));
}

// t:scatter or t:scatter_add(dim, index, src); src is a tensor or a number
Result<int> scatter_with(lua_State* L, const char* what, bool add) {
  Tensor& a = check_self(L, what, 4);
  tensor_state(L);
  int dim = check_dim(L, 2, what);
  Tensor& index = check_tensor(L, 3, what);
  if (lua_type(L, 4) != LUA_TNUMBER) return give(L, tensor::scatter(a, dim, index, check_tensor(L, 4, what), add));
  RILLE_TRY(const Tensor constant, tensor::full(a.graph(), {}, lua_tonumber(L, 4), a.dtype()));
  auto src = tensor::expand(constant, index.shape());
  if (!src) return at_line(L, std::move(src).error());
  return give(L, tensor::scatter(a, dim, index, *src, add));
}
Result<int> scatter(lua_State* L) { return scatter_with(L, "scatter", false); }
Result<int> scatter_add(lua_State* L) { return scatter_with(L, "scatter_add", true); }

Result<int> index_select(lua_State* L) {  // t:index_select(dim, index)
  Tensor& a = check_self(L, "index_select", 3);
  tensor_state(L);
  int dim = check_dim(L, 2, "index_select");
  return give(L, tensor::index_select(a, dim, check_tensor(L, 3, "index_select's numbers")));
}

Result<int> index_with(lua_State* L, const char* what, bool add) {  // t:index_add(dim, index, src)
  Tensor& a = check_self(L, what, 4);
  tensor_state(L);
  int dim = check_dim(L, 2, what);
  Tensor& index = check_tensor(L, 3, what);
  return give(L, tensor::index_put(a, dim, index, check_tensor(L, 4, what), add));
}
Result<int> index_add(lua_State* L) { return index_with(L, "index_add", true); }
Result<int> index_copy(lua_State* L) { return index_with(L, "index_copy", false); }

Result<int> one_hot(lua_State* L) {  // ids:one_hot(classes)
  Tensor& ids = check_self(L, "one_hot", 2);
  tensor_state(L);
  return give(L, tensor::one_hot(ids, check_integer(L, 2, "one_hot's number of classes")));
}

Result<int> give_sorted(lua_State* L, Result<tensor::Sorted> sorted) {
  if (!sorted) return at_line(L, std::move(sorted).error());
  return push_tensor(L, std::move(sorted->values)) + push_tensor(L, std::move(sorted->places));
}

bool descending(lua_State* L, const char* what) {
  check_options(L, 3, what, {"descending"});
  return lua_istable(L, 3) && option_bool(L, 3, "descending", false);
}

Result<int> sort(lua_State* L) {  // t:sort(dim, {descending =}) -> values, indices
  Tensor& a = check_self(L, "sort", 3);
  tensor_state(L);
  options_may_stand_first(L, 2, "sort");
  int dim = lua_isnoneornil(L, 2) ? -1 : check_dim(L, 2, "sort");
  return give_sorted(L, tensor::sort(a, dim, descending(L, "sort")));
}

Result<int> argsort(lua_State* L) {
  Tensor& a = check_self(L, "argsort", 3);
  tensor_state(L);
  options_may_stand_first(L, 2, "argsort");
  int dim = lua_isnoneornil(L, 2) ? -1 : check_dim(L, 2, "argsort");
  auto sorted = tensor::sort(a.detach(), dim, descending(L, "argsort"));
  if (!sorted) return at_line(L, std::move(sorted).error());
  return push_tensor(L, std::move(sorted->places));
}

Result<int> topk(lua_State* L) {  // t:topk(k, dim, {largest =}) -> values, indices
  Tensor& a = check_self(L, "topk", 4);
  tensor_state(L);
  std::int64_t k = check_integer(L, 2, "topk's number");
  options_may_stand_first(L, 3, "topk");
  int dim = lua_isnoneornil(L, 3) ? -1 : check_dim(L, 3, "topk");
  check_options(L, 4, "topk", {"largest"});
  return give_sorted(L, tensor::topk(a, k, dim, !lua_istable(L, 4) || option_bool(L, 4, "largest", true)));
}

struct Triangle {
  const char* name;
  Result<Tensor> (*fn)(const Tensor&, std::int64_t);
};
constexpr Triangle tril_{"tril", tensor::tril}, triu_{"triu", tensor::triu};

template <const Triangle& F>
Result<int> triangle(lua_State* L) {
  Tensor& a = check_self(L, F.name, 2);
  tensor_state(L);
  return give(L, F.fn(a, lua_isnoneornil(L, 2) ? 0 : check_integer(L, 2, F.name)));
}

Result<int> flip(lua_State* L) {  // t:flip(dims)
  Tensor& a = check_self(L, "flip", 2);
  tensor_state(L);
  auto dims = check_dims(L, 2, "flip");
  if (lua_isnoneornil(L, 2))
    for (int d = 0; d < a.rank(); ++d) dims.push_back(d);
  return give(L, tensor::flip(a, dims));
}

Result<int> roll(lua_State* L) {  // t:roll(shift, dim)
  Tensor& a = check_self(L, "roll", 3);
  tensor_state(L);
  std::int64_t shift = check_integer(L, 2, "roll's shift");
  return give(L, tensor::roll(a, shift, lua_isnoneornil(L, 3) ? -1 : check_dim(L, 3, "roll")));
}

Result<int> tile(lua_State* L) {
  Tensor& a = check_tensor(L, 1, "tile");
  tensor_state(L);
  return give(L, tensor::tile(a, check_sizes(L, 2, "tile")));
}

Result<int> repeat_interleave(lua_State* L) {  // t:repeat_interleave(times, dim)
  Tensor& a = check_self(L, "repeat_interleave", 3);
  tensor_state(L);
  std::int64_t times = check_integer(L, 2, "repeat_interleave");
  return give(L,
              tensor::repeat_interleave(a, times, lua_isnoneornil(L, 3) ? -1 : check_dim(L, 3, "repeat_interleave")));
}

Result<int> flatten(lua_State* L) {  // t:flatten(first, last)
  Tensor& a = check_self(L, "flatten", 3);
  tensor_state(L);
  int first = lua_isnoneornil(L, 2) ? 0 : check_dim(L, 2, "flatten");
  return give(L, tensor::flatten(a, first, lua_isnoneornil(L, 3) ? -1 : check_dim(L, 3, "flatten")));
}

std::vector<std::int64_t> check_list(lua_State* L, int index, const char* what) {
  check_table(L, index, what);
  check_known(L, index, what, {}, true);
  std::vector<std::int64_t> list;
  for (std::size_t i = 1, n = lua_objlen(L, index); i <= n; ++i) {
    lua_rawgeti(L, index, static_cast<int>(i));
    list.push_back(check_integer(L, -1, what));
    lua_pop(L, 1);
  }
  return list;
}

Result<int> pad(lua_State* L) {  // t:pad({left, right, top, bottom}, value)
  Tensor& a = check_self(L, "pad", 3);
  tensor_state(L);
  auto edges = check_list(L, 2, "pad's edges");
  return give(L, tensor::pad(a, edges, lua_isnoneornil(L, 3) ? 0 : check_number(L, 3, "pad's value")));
}

Result<int> split(lua_State* L) {  // t:split(size or {sizes}, dim) -> the pieces
  Tensor& a = check_self(L, "split", 3);
  tensor_state(L);
  int dim = lua_isnoneornil(L, 3) ? 0 : check_dim(L, 3, "split");
  std::vector<std::int64_t> sizes;
  if (lua_istable(L, 2)) {
    sizes = check_list(L, 2, "split's sizes");
  } else {
    std::int64_t each = check_integer(L, 2, "split's size");
    std::int64_t left = dim < a.rank() && dim >= -a.rank() ? a.size(dim) : 0;
    if (each < 1 || left / each > 200)
      raise_invalid(L, fmt::format("split: pieces of size {} from {}: at most 200 pieces are possible ({})", each,
                                   tensor::to_string(a.shape()), script_position(L)));
    for (; left > 0; left -= each) sizes.push_back(std::min(each, left));
    if (sizes.empty()) sizes.push_back(0);
  }
  auto parts = tensor::split(a, sizes, dim);
  if (!parts) return at_line(L, std::move(parts).error());
  if (!lua_checkstack(L, static_cast<int>(parts->size()) + 4))
    raise_invalid(L, "split: too many pieces", "Lua cannot hold so many results: use larger pieces");
  for (Tensor& part : *parts) push_tensor(L, std::move(part));
  return static_cast<int>(parts->size());
}

Result<int> stack(lua_State* L) {  // a:stack({b, c}, dim)
  std::vector<Tensor> parts{check_self(L, "stack", 3)};
  tensor_state(L);
  const auto others = check_tensors(L, 2, "stack");
  parts.insert(parts.end(), others.begin(), others.end());
  return give(L, tensor::stack(parts, lua_isnoneornil(L, 3) ? 0 : check_dim(L, 3, "stack")));
}

std::int64_t position(lua_State* L, double n, const Tensor& t, int dim) {
  const std::int64_t size = t.size(dim);
  if (n != std::floor(n) || n == 0 || n > double(size) || n < -double(size))
    raise_invalid(L,
                  fmt::format("position {} in dimension {} of {} ({})", n, dim + 1, tensor::to_string(t.shape()),
                              script_position(L)),
                  "positions count from 1; -1 is the last");
  return n > 0 ? std::int64_t(n) - 1 : size + std::int64_t(n);
}

// Refuses x[mask] and x[ids]: how many elements they select is known only after reading the mask, and a slice must be
// a view.
void refuse_tensor(lua_State* L, int index) {
  const Tensor* t = test_tensor(L, index);
  if (!t || !*t) return;
  const bool mask = t->dtype() == DType::boolean;
  raise_invalid(L,
                fmt::format("a slice: {}{} cannot be used as a position ({})", name_of(t->dtype()),
                            tensor::to_string(t->shape()), script_position(L)),
                mask ? "instead of x[mask] = 0: x:masked_fill(mask, 0) or mask:where(a, x), which make a new tensor "
                       "(x:copy_(..) writes it back); instead of x[mask]: x:masked_select(mask)"
                     : "instead of x[ids]: x:index_select(1, ids), x:gather(dim, ids), which count from 0; instead of "
                       "x[ids] = y: x:scatter(dim, ids, y)");
}

// Applies the slice entry on top of the stack to dimension `dim` of `t`; returns whether the result keeps the
// dimension.
Result<bool> slice_dimension(lua_State* L, Tensor& t, int dim) {
  if (lua_type(L, -1) == LUA_TNUMBER) {
    RILLE_TRY(t, tensor::select(t, dim, position(L, lua_tonumber(L, -1), t, dim)));
    return false;
  }
  refuse_tensor(L, -1);
  check_table(L, -1, "a slice's entry");
  const std::size_t n = lua_objlen(L, -1);
  if (n == 0) return true;  // {} selects the whole dimension
  if (n != 2 && n != 3)
    raise_invalid(L, fmt::format("a slice has {} numbers: expected up to 3 ({})", n, script_position(L)),
                  "{first, last}, {first, last, step}, {} for all, or one number");
  lua_rawgeti(L, -1, 1);
  lua_rawgeti(L, -2, 2);
  lua_rawgeti(L, -3, 3);
  const std::int64_t first = position(L, check_number(L, -3, "a slice's first position"), t, dim);
  const std::int64_t last = position(L, check_number(L, -2, "a slice's last position"), t, dim);
  const std::int64_t step = n == 3 ? check_integer(L, -1, "a slice's step") : 1;
  lua_pop(L, 3);
  if (step < 1)
    raise_invalid(L, fmt::format("a slice in steps of {}: expected 1 or more ({})", step, script_position(L)),
                  "a step is 1 or more; t:flip(dim) turns a dimension round");
  if (last < first)
    raise_invalid(L, fmt::format("a slice from {} to {} in dimension {} of {} ({})", first + 1, last + 1, dim + 1,
                                 tensor::to_string(t.shape()), script_position(L)));
  RILLE_TRY(t, tensor::slice(t, dim, first, last + 1, step));
  return true;
}

// Returns a view for t[i] or t[{i, {first, last}, {first, last, step}, {}}]. The key is at stack index 2.
Result<Tensor> sliced(lua_State* L) {
  Tensor t = check_tensor(L, 1, "a slice");
  if (lua_type(L, 2) == LUA_TNUMBER) {
    if (t.rank() == 0)
      raise_invalid(L, fmt::format("a tensor without dimensions has no elements to index ({})", script_position(L)),
                    "t:item()");
    return tensor::select(t, 0, position(L, lua_tonumber(L, 2), t, 0));
  }
  refuse_tensor(L, 2);
  check_table(L, 2, "a slice");
  const std::size_t n = lua_objlen(L, 2);
  if (n > std::size_t(t.rank()))
    raise_invalid(L, fmt::format("a slice names {} dimensions, more than {} has ({})", n, tensor::to_string(t.shape()),
                                 script_position(L)));
  int dim = 0;
  for (std::size_t i = 1; i <= n; ++i) {
    lua_rawgeti(L, 2, static_cast<int>(i));
    RILLE_TRY(const bool stays, slice_dimension(L, t, dim));
    lua_pop(L, 1);
    dim += stays;
  }
  return t;
}

Result<int> assign(lua_State* L) {  // t[...] = number or tensor: writes into t's memory
  if (lua_type(L, 2) == LUA_TSTRING)
    raise_invalid(L,
                  fmt::format("the field '{}' of a tensor cannot be set ({})", lua_tostring(L, 2), script_position(L)),
                  "t:set_grad(g), t:requires_grad_(), t:copy_(u)");
  tensor_state(L);
  auto part = sliced(L);
  if (!part) return at_line(L, std::move(part).error());
  auto done = lua_type(L, 3) == LUA_TNUMBER ? tensor::fill_(*part, lua_tonumber(L, 3))
                                            : tensor::copy_(*part, check_tensor(L, 3, "what is written to a slice"));
  if (!done) return at_line(L, std::move(done).error());
  return 0;
}

Result<int> element_of(lua_State* L) { return give(L, sliced(L)); }

}  // namespace

int tensor_element(lua_State* L) { return bind<element_of>(L); }
int tensor_assign(lua_State* L) { return bind<assign>(L); }

std::vector<Function> index_methods() {
  return {{"gather", bind<gather>},
          {"scatter", bind<scatter>},
          {"scatter_add", bind<scatter_add>},
          {"index_add", bind<index_add>},
          {"index_copy", bind<index_copy>},
          {"index_select", bind<index_select>},
          {"one_hot", bind<one_hot>},
          {"sort", bind<sort>},
          {"argsort", bind<argsort>},
          {"topk", bind<topk>},
          {"tril", bind<triangle<tril_>>},
          {"triu", bind<triangle<triu_>>},
          {"flip", bind<flip>},
          {"roll", bind<roll>},
          {"tile", bind<tile>},
          {"repeat_interleave", bind<repeat_interleave>},
          {"flatten", bind<flatten>},
          {"pad", bind<pad>},
          {"split", bind<split>},
          {"stack", bind<stack>}};
}

}  // namespace rille::lua
