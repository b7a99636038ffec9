// How an operation is declared for the tests: what it takes, how it is called, and what it should give, in plain f64
// loops. operations_test.cpp runs every declaration in every type it names: against the reference, on strided and
// broadcast inputs, its gradient against finite differences, and compiled against plain. Nothing here names a device: a
// second one is checked against the CPU by the same declarations. What is measured stands in tests/gpu, which declares
// what Lua calls.
//
// To add an operation, add an entry to the list of its kind (declared_*.cpp).
#pragma once

#include <cmath>
#include <functional>
#include <string>

#include "fixture.hpp"

namespace rille::tensor::declared {

using Numbers = std::vector<double>;
using Tensors = std::vector<Tensor>;
using Types = std::vector<DType>;

inline const Types floats{DType::f32, DType::f64, DType::bf16, DType::f16};
inline const Types integers{DType::i64, DType::i32, DType::i8, DType::u8};
inline Types numbers_of_all_types() {
  Types all = floats;
  all.insert(all.end(), integers.begin(), integers.end());
  return all;
}

struct Argument {
  Dims shape;
  double low = -2, high = 2;  // drawn between them
  bool gradient = true;       // false: a mask, ids, statistics
};

struct Operation {
  std::string name;
  std::vector<Argument> arguments;
  std::function<Result<Tensor>(const Tensors&)> run;
  std::function<Numbers(const std::vector<Numbers>&)> reference;
  bool gradient = true;
  Types types = floats;
  double slack = 1;  // times the type's tolerance: for what rounds more than once
};

using Reference = std::function<Numbers(const std::vector<Numbers>&)>;

std::vector<Operation> elementwise();
std::vector<Operation> activations();
std::vector<Operation> products();
std::vector<Operation> shapes();
std::vector<Operation> reductions();
std::vector<Operation> networks();
std::vector<Operation> indexing();
std::vector<Operation> images();
std::vector<Operation> attention_and_losses();
std::vector<Operation> fourier();

// -- references that several declarations share
inline Reference each(double (*f)(double)) {
  return [f](const std::vector<Numbers>& in) {
    Numbers out;
    for (double x : in[0]) out.push_back(f(x));
    return out;
  };
}
inline Reference pairs(double (*f)(double, double)) {  // the second operand repeats
  return [f](const std::vector<Numbers>& in) {
    Numbers out;
    for (std::size_t i = 0; i < in[0].size(); ++i) out.push_back(f(in[0][i], in[1][i % in[1].size()]));
    return out;
  };
}
// f(row of n numbers) for each row.
template <class F>
Reference rows(int n, F f) {
  return [n, f](const std::vector<Numbers>& in) {
    Numbers out;
    for (std::size_t r = 0; r < in[0].size(); r += std::size_t(n)) {
      const Numbers y = f(Numbers(in[0].begin() + long(r), in[0].begin() + long(r) + n));
      out.insert(out.end(), y.begin(), y.end());
    }
    return out;
  };
}
inline Numbers softmax_rows(const Numbers& x, int n) {
  Numbers out(x.size());
  for (std::size_t r = 0; r < x.size(); r += std::size_t(n)) {
    double m = -1e300, s = 0;
    for (int i = 0; i < n; ++i) m = std::max(m, x[r + i]);
    for (int i = 0; i < n; ++i) s += out[r + i] = std::exp(x[r + i] - m);
    for (int i = 0; i < n; ++i) out[r + i] /= s;
  }
  return out;
}
inline Tensor ids_of(const Tensor& like, std::vector<double> ids, const Dims& shape, DType dtype = DType::i64) {
  return get(from_numbers(like.graph(), shape, dtype, ids));
}

// How an input lies in memory. Its numbers are the same.
enum class Layout { plain, turned, window, repeated };

inline Tensor input(Graph& g, const Argument& a, const Numbers& values, DType dtype, Layout layout) {
  const Tensor t = get(from_numbers(g, a.shape, dtype, values));
  const int r = t.rank();
  if (layout == Layout::turned && r > 1) return get(transpose(get(clone(get(transpose(t, 0, r - 1)))), 0, r - 1));
  if (layout == Layout::window && r > 0) {
    const auto edge = get(full(g, a.shape, 7, dtype));
    return get(narrow(get(cat({edge, t, edge}, r - 1)), r - 1, a.shape[r - 1], a.shape[r - 1]));
  }
  if (layout == Layout::repeated && r > 0) return get(expand(get(narrow(t, 0, 0, 1)), a.shape));
  return t;
}

}  // namespace rille::tensor::declared
