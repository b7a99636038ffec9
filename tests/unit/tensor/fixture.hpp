// What the tensor tests share: a graph on the CPU device, and unwrapping of results.
#pragma once

#include <catch2/catch.hpp>

#include "runtime/compute/tensor/autograd.hpp"
#include "runtime/compute/tensor/compile.hpp"
#include "runtime/compute/tensor/optimizer.hpp"

namespace rille::tensor {

inline std::shared_ptr<Graph> new_graph() {
  static const auto lane = device::Lane::shared(2);
  auto g = Graph::create(device::CpuDevice::create(lane));
  REQUIRE(g.ok());
  (*g)->manual_seed(7);
  return *g;
}

template <class T>
T get(Result<T> r) {
  if (!r) FAIL(r.error().summary());
  return std::move(r).value();
}
inline void get(Result<void> r) {
  if (!r) FAIL(r.error().summary());
}

inline Dims dims(std::initializer_list<std::int64_t> sizes) {
  Dims d;
  for (auto s : sizes) d.push(s);
  return d;
}

inline std::vector<double> numbers(const Tensor& t) {
  const auto data = get(t.graph().read_blocking(t));
  std::vector<double> out;
  for (std::int64_t i = 0; i < data.shape.count(); ++i) out.push_back(data.number(i));
  return out;
}

inline std::vector<std::byte> bits(const Tensor& t) { return get(t.graph().read_blocking(t)).bytes; }

inline Tensor leaf_of(const Tensor& t, DType dtype) {
  auto p = get(cast(t, dtype)).detach();
  get(p.set_requires_grad(true));
  return p;
}

inline Tensor leaf(Graph& g, const Dims& shape, const std::vector<double>& values, DType dtype = DType::f64) {
  auto t = get(from_numbers(g, shape, dtype, values));
  get(t.set_requires_grad(true));
  return t;
}

}  // namespace rille::tensor
