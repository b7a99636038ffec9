// Methods whose result size depends on values: they suspend the fiber until it is known.
#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

namespace {

// Returns the indices of the mask's true elements, ascending.
std::vector<std::int64_t> true_places(const HostData& mask) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < mask.bytes.size(); ++i)
    if (mask.bytes[i] != std::byte{0}) out.push_back(static_cast<std::int64_t>(i));
  return out;
}

Dims one_dimension(std::size_t n) {
  Dims shape;
  shape.push(static_cast<std::int64_t>(n));
  return shape;
}

// Pushes use(l, i64 [n]) of the places of the mask's true elements, ascending. The CPU reads the mask. A GPU finds them
// by a stable sort and waits for their number alone, for copying a mask to the host takes longer than sorting it.
using UsePlaces = std::function<int(lua_State*, const Tensor&)>;
int with_places(lua_State* L, const Tensor& mask, UsePlaces use) {
  Graph& g = mask.graph();
  const bool small = mask.count() > 0 && mask.count() < std::int64_t(1) << 32;  // what a GPU can sort
  if (g.device()->kind() == device::Kind::cpu || !small)
    return await_values(L, {mask}, [use, graph = g.shared_from_this()](lua_State* l, std::vector<HostData> values) {
      const auto places = true_places(values[0]);
      return use(l, value_or_raise(l, tensor::from_bytes(*graph, one_dimension(places.size()), DType::i64,
                                                         places.data(), places.size() * sizeof(std::int64_t))));
    });
  const Tensor flags = value_or_raise(L, tensor::cast(value_or_raise(L, tensor::flatten(mask)), DType::u8));
  const Tensor count = value_or_raise(L, tensor::sum(flags));
  const Tensor places = value_or_raise(L, tensor::sort(flags, 0, true)).places;
  return await_values(L, {count}, [use, places](lua_State* l, std::vector<HostData> values) {
    return use(l, value_or_raise(l, tensor::narrow(places, 0, 0, values[0].integer(0))));
  });
}

// x:masked_select(mask) -> a tensor with x's elements where the mask is true
int masked_select(lua_State* L) {
  const Tensor x = check_self(L, "masked_select", 2), mask = check_tensor(L, 2, "masked_select's mask");
  tensor_state(L);
  const auto raised = [L](Result<Tensor> t) {
    return value_or_raise(L, t ? std::move(t) : Result<Tensor>(at_line(L, std::move(t).error())));
  };
  if (mask.dtype() != DType::boolean)
    raise_invalid(L,
                  fmt::format("masked_select: a mask of {}{} ({})", name_of(mask.dtype()),
                              tensor::to_string(mask.shape()), script_position(L)),
                  "a mask is bool, as x:gt(0) gives it");
  const Tensor whole = raised(tensor::expand(mask.detach(), x.shape())), flat = raised(tensor::flatten(x));
  return with_places(L, whole, [flat](lua_State* l, const Tensor& places) {
    return push_tensor(l, value_or_raise(l, tensor::index_select(flat, 0, places)));
  });
}

// x:nonzero() -> i64 [number of nonzero elements, rank of x]
int nonzero(lua_State* L) {
  const Tensor x = check_self(L, "nonzero", 1);
  tensor_state(L);
  const Tensor mask = x.dtype() == DType::boolean ? x : value_or_raise(L, tensor::ne(x.detach(), 0.0));
  return with_places(L, mask, [shape = mask.shape()](lua_State* l, const Tensor& places) {
    if (shape.n == 0) {  // of a single number: as many rows, and no column
      Dims none = one_dimension(static_cast<std::size_t>(places.count()));
      none.push(0);
      return push_tensor(l, value_or_raise(l, tensor::zeros(places.graph(), none, DType::i64)));
    }
    std::vector<Tensor> columns;
    Tensor rest = places;
    for (int d = shape.n - 1; d >= 0; --d) {
      const double length = static_cast<double>(std::max<std::int64_t>(shape[d], 1));
      columns.push_back(value_or_raise(l, tensor::remainder(rest, length)));
      rest = value_or_raise(l, tensor::floor_divide(rest, length));
    }
    std::reverse(columns.begin(), columns.end());
    return push_tensor(l, value_or_raise(l, tensor::stack(columns, 1)));
  });
}

}  // namespace

std::vector<Function> masked_methods() { return {{"masked_select", bind<masked_select>}, {"nonzero", bind<nonzero>}}; }

}  // namespace rille::lua
