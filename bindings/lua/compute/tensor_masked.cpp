// Methods whose result size depends on values: they suspend the fiber while the mask is copied to host memory.
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

Tensor number_list(lua_State* L, Graph& g, const Dims& shape, const std::vector<std::int64_t>& numbers) {
  const std::size_t bytes = numbers.size() * sizeof(std::int64_t);
  return value_or_raise(L, tensor::from_bytes(g, shape, DType::i64, numbers.data(), bytes));
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
  return await_values(L, {whole}, [flat](lua_State* l, std::vector<HostData> values) {
    const auto places = true_places(values[0]);
    Dims shape;
    shape.push(static_cast<std::int64_t>(places.size()));
    const Tensor ids = number_list(l, flat.graph(), shape, places);
    return push_tensor(l, value_or_raise(l, tensor::index_select(flat, 0, ids)));
  });
}

// x:nonzero() -> i64 [number of nonzero elements, rank of x]
int nonzero(lua_State* L) {
  const Tensor x = check_self(L, "nonzero", 1);
  tensor_state(L);
  const Tensor mask = x.dtype() == DType::boolean ? x : value_or_raise(L, tensor::ne(x.detach(), 0.0));
  return await_values(L, {mask}, [graph = x.graph().shared_from_this()](lua_State* l, std::vector<HostData> values) {
    const Dims& shape = values[0].shape;
    const auto places = true_places(values[0]);
    std::vector<std::int64_t> out(places.size() * static_cast<std::size_t>(shape.n));
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::int64_t rest = places[i];
      for (int d = shape.n - 1; d >= 0; rest /= shape[d--])
        out[i * static_cast<std::size_t>(shape.n) + static_cast<std::size_t>(d)] = rest % shape[d];
    }
    Dims wanted;
    wanted.push(static_cast<std::int64_t>(places.size()));
    wanted.push(shape.n);
    return push_tensor(l, number_list(l, *graph, wanted, out));
  });
}

}  // namespace

std::vector<Function> masked_methods() { return {{"masked_select", bind<masked_select>}, {"nonzero", bind<nonzero>}}; }

}  // namespace rille::lua
