// Products by a library (tests/support/cublaslt.cpp plays cuBLASLt): whatever way the operands lie, and also where the
// own kernel takes over.
#include "standin.hpp"

namespace rille::tensor {
namespace {

using test::Standin;

Tensor operand(Graph& g, const Dims& shape, DType dtype, int seed) {
  std::vector<double> v(std::size_t(shape.count()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = double((i * 7 + std::size_t(seed) * 3) % 11) - 5;  // exact sums
  return get(from_numbers(g, shape, dtype, v));
}
Tensor turned(const Tensor& t) { return get(transpose(t, -1, -2)); }

std::vector<std::vector<std::byte>> products(Graph& g, DType t) {
  std::vector<std::vector<std::byte>> out;
  const auto add = [&](Result<Tensor> r) { out.push_back(bits(get(std::move(r)))); };
  const auto a = operand(g, dims({5, 7}), t, 1), b = operand(g, dims({7, 3}), t, 2);
  add(matmul(a, b));
  add(matmul(turned(operand(g, dims({7, 5}), t, 3)), b));
  add(matmul(a, turned(operand(g, dims({3, 7}), t, 4))));
  add(matmul(turned(operand(g, dims({7, 5}), t, 5)), turned(operand(g, dims({3, 7}), t, 6))));
  add(matmul(operand(g, dims({1, 7}), t, 7), b));
  add(matmul(a, operand(g, dims({7, 1}), t, 8)));
  add(matmul(operand(g, dims({4, 5, 7}), t, 9), operand(g, dims({4, 7, 3}), t, 10)));
  add(matmul(operand(g, dims({4, 5, 7}), t, 11), b));  // one matrix for all
  add(matmul(operand(g, dims({2, 3, 5, 7}), t, 12), turned(operand(g, dims({2, 3, 3, 7}), t, 13))));
  add(matmul(get(narrow(operand(g, dims({5, 9}), t, 14), 1, 2, 7)), b));  // rows with a gap
  add(matmul(get(permute(operand(g, dims({5, 4, 7}), t, 15), dims({1, 0, 2}))), b));
  add(matmul(operand(g, dims({3, 1, 5, 7}), t, 16), operand(g, dims({1, 4, 7, 3}), t, 17)));  // no equal distances
  add(linear(a, operand(g, dims({3, 7}), t, 18), operand(g, dims({3}), t, 19)));
  add(linear(operand(g, dims({2, 5, 7}), t, 20), operand(g, dims({3, 7}), t, 21), operand(g, dims({3}), t, 22)));
  add(matmul(operand(g, dims({5, 0}), t, 23), operand(g, dims({0, 3}), t, 24)));
  return out;
}

void compare_products(const Standin& standin, DType t) {
  INFO(name_of(t));
  const auto expected = products(*new_graph(), t), got = products(*standin.graph(), t);
  REQUIRE(expected.size() == got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("product " << i);
    CHECK(got[i] == expected[i]);
  }
  CHECK(std::string(standin.report().wrong) == "");
}

TEST_CASE("products are the CPU's, whatever way their operands lie", "[cuda]") {
  const Standin standin;
  std::int64_t before = 0;
  for (const auto t : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    compare_products(standin, t);
    CHECK(standin.report().library_calls > before + 10);
    before = standin.report().library_calls;
  }
}

TEST_CASE("products that the library declines are the own kernels'", "[cuda]") {
  const test::NoHalf declining;
  const Standin standin;
  for (const auto t : {DType::bf16, DType::f16}) compare_products(standin, t);
  CHECK(standin.report().library_calls == 0);
}

// The library chooses an algorithm for the bias's alignment: one that lies elsewhere gets another.
TEST_CASE("a bias may begin at any element", "[cuda]") {
  const Standin standin;
  const auto sums = [](Graph& g, std::int64_t from) {
    const auto row = get(narrow(operand(g, dims({64}), DType::f32, 3), 0, from, 8));
    return bits(get(linear(operand(g, dims({5, 7}), DType::f32, 1), operand(g, dims({8, 7}), DType::f32, 2), row)));
  };
  const auto g = standin.graph(), cpu = new_graph();
  for (const std::int64_t from : {0, 1, 2, 4, 7}) {
    INFO("from element " << from);
    CHECK(sums(*g, from) == sums(*cpu, from));
  }
  CHECK(standin.report().library_calls == 5);
}

// What TF32's ten bits lose shows: 1 + 2^-11 + 2^-12 becomes 1 + 2^-10, 1 + 2^-12 becomes 1.
TEST_CASE("products are rounded to TF32 where it is asked for, gradients' too, and not elsewhere", "[cuda]") {
  const Standin standin;
  const auto results = [](const std::shared_ptr<Graph>& g, bool tf32, DType t) {
    g->set_modes({.tf32 = tf32});
    const Tensor x = get(from_numbers(*g, dims({1, 2}), t, {1 + 0x1p-11 + 0x1p-12, 1 + 0x1p-12}));
    Tensor w = get(from_numbers(*g, dims({2, 2}), t, {1, 2, 3, 1 + 0x1p-12}));
    CHECK(w.set_requires_grad(true));
    const Tensor y = get(linear(x, w)), z = get(matmul(x, w.detach()));
    const Tensor loss = get(sum(get(mul(y, y))));
    g->set_modes({});  // backward does as the operation did
    CHECK(backward(loss));
    return std::vector{numbers(y), numbers(z), numbers(w.grad())};
  };
  const auto g = standin.graph(), cpu = new_graph();
  const auto full = results(cpu, false, DType::f32);
  CHECK(results(g, false, DType::f32) == full);
  CHECK(results(cpu, true, DType::f32) == full);  // a CPU has no TF32
  CHECK(results(g, true, DType::f64) == results(cpu, false, DType::f64));
  const auto rough = results(g, true, DType::f32);
  CHECK(rough[0] == std::vector<double>{3 + 0x1p-10, 4 + 3 * 0x1p-10});
  CHECK(rough[1] == std::vector<double>{4 + 0x1p-10, 3 + 0x1p-9});
  CHECK(rough[2][0] == (6 + 0x1p-8) * (1 + 0x1p-10));
  CHECK(rough[2][1] == 6 + 0x1p-8);
}

}  // namespace
}  // namespace rille::tensor
