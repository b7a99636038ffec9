// Types that meet, refusals, and random numbers. The operations themselves are declared in declared_*.cpp and
// checked in operations_test.cpp.
#include <algorithm>
#include <cmath>

#include "fixture.hpp"

namespace rille::tensor {
namespace {

using Numbers = std::vector<double>;

void check_near(const Numbers& got, const Numbers& want, double tolerance, const std::string& what) {
  INFO(what);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    CHECK(got[i] == Approx(want[i]).epsilon(tolerance).margin(tolerance));
  }
}

}  // namespace

TEST_CASE("long rows, strides and reductions agree with plain loops", "[unit][tensor]") {
  auto graph = new_graph();
  const auto x = get(randn(*graph, dims({37, 1003})));
  const auto v = numbers(x);
  double total = 0;
  Numbers columns(1003, 0);
  for (std::size_t i = 0; i < v.size(); ++i) {
    total += v[i];
    columns[i % 1003] += v[i];
  }
  CHECK(get(graph->item_blocking(get(sum(x)))) == Approx(total).margin(1e-3));
  check_near(numbers(get(sum(x, {0}))), columns, 1e-5, "columns");
  check_near(numbers(get(sum(get(transpose(x, 0, 1)), {1}))), columns, 1e-5, "columns of the transpose");
  const auto turned = numbers(get(contiguous(get(add(get(transpose(x, 0, 1)), 1)))));
  for (int i : {0, 1, 500, 1002}) CHECK(turned[std::size_t(i) * 37 + 5] == Approx(v[5 * 1003 + std::size_t(i)] + 1));
  const auto ends = get(narrow(get(narrow(x, 1, 3, 1000)), 0, 30, 7));
  CHECK(numbers(get(mul(ends, 2)))[6 * 1000 + 999] == Approx(2 * v[36 * 1003 + 1002]));
}

TEST_CASE("types meet, and are kept", "[unit][tensor]") {
  auto graph = new_graph();
  const auto i = get(arange(*graph, 0, 4, 1, DType::i32));
  CHECK(get(add(i, get(arange(*graph, 0, 4, 1, DType::i64)))).dtype() == DType::i64);
  CHECK(get(add(i, 1)).dtype() == DType::i32);
  CHECK(get(add(i, 0.5)).dtype() == DType::f32);
  CHECK(numbers(get(div(i, 2))) == Numbers{0, 0.5, 1, 1.5});
  CHECK(get(graph->item_blocking(get(sum(get(gt(i, 1)))))) == 2);
  CHECK(numbers(
            get(cast(get(cast(get(from_numbers(*graph, dims({3}), DType::f32, {1.00390625, -2.5, 1e30})), DType::bf16)),
                     DType::f32)))[1] == -2.5);
  CHECK(numbers(get(cast(get(from_numbers(*graph, dims({3}), DType::f32, {1.9, -1.9, 0})), DType::i64))) ==
        Numbers{1, -1, 0});
}

TEST_CASE("bad shapes and types are refused at once, naming both", "[unit][tensor]") {
  auto graph = new_graph();
  const auto a = get(zeros(*graph, dims({2, 3}))), b = get(zeros(*graph, dims({4, 5})));
  const auto message = [](auto r) {
    REQUIRE_FALSE(r.ok());
    CHECK(r.error().kind == ErrorKind::invalid);
    return r.error().message;
  };
  CHECK(message(matmul(a, b)) == "matmul: [2, 3] x [4, 5]: inner dimensions 3 and 4 differ");
  CHECK(message(add(a, b)).find("add: [2, 3] and [4, 5]") == 0);
  CHECK(message(view(get(transpose(a, 0, 1)), dims({6}))).find("without a copy") != std::string::npos);
  CHECK(message(reshape(a, dims({4}))).find("[2, 3] to [4]") != std::string::npos);
  CHECK(message(narrow(a, 1, 2, 2)).find("narrow: 2 elements from position 2") == 0);
  CHECK(message(embedding(a, a)).find("embedding: ids of f32[2, 3]") == 0);
  CHECK(message(cross_entropy(a, get(zeros(*graph, dims({3}), DType::i64)))).find("logits [2, 3] with labels [3]") !=
        std::string::npos);
  CHECK(message(softmax(a, 2)).find("dimension 3") != std::string::npos);
  CHECK(message(matmul(get(cast(a, DType::i64)), b)).find("matmul: i64[2, 3] and f32[4, 5]: expected floating types") ==
        0);
  CHECK(message(matmul(get(cast(a, DType::bf16)), b)).find("bf16[2, 3] and f32[4, 5]: types differ") !=
        std::string::npos);
  CHECK(message(bitwise_and(a, b)).find("bitwise_and: f32[2, 3] and f32[4, 5]") == 0);
  CHECK(message(logical_and(a, b)).find("logical_and: [2, 3] and [4, 5]") == 0);
  CHECK(message(masked_fill(a, get(gt(b, 0)), 1)).find("[2, 3]") != std::string::npos);
  CHECK(message(clamp(a, 2, 1)).find("clamp: from 2 to 1") == 0);
  CHECK(message(var(get(zeros(*graph, dims({1}))))).find("var: 1 elements of [1]") == 0);
  const auto i = get(zeros(*graph, dims({2, 2}), DType::i64));
  CHECK(message(gather(a, 1, a)) == "gather: f32[2, 3] with indices of f32[2, 3]: expected whole numbers");
  CHECK(message(gather(a, 0, get(zeros(*graph, dims({2, 4}), DType::i64)))).find("gather: [2, 3] along dimension 1") ==
        0);
  CHECK(message(scatter(a, 1, i, b)).find("scatter: values of [4, 5] at indices of [2, 2]") == 0);
  CHECK(message(scatter(a, 1, i, i, true)).find("scatter_add: f32[2, 3] and i64[2, 2]") == 0);
  CHECK(message(index_select(a, 0, i)).find("index_select: [2, 3] by indices of [2, 2]") == 0);
  CHECK(message(split(a, {1, 1}, 1)).find("split: [2, 3] into {1, 1} along dimension 2: the sizes do not make 3") == 0);
  CHECK(message(stack({a, b}, 0)) == "stack: [2, 3] and [4, 5]: expected the same shape");
  CHECK(message(topk(a, 4, 1)).find("topk: k = 4 for [2, 3]: dimension 2 has fewer elements") == 0);
  CHECK(message(tile(a, dims({2}))).find("tile: [2, 3] by [2]") == 0);
  CHECK(message(pad(a, {1, 1, 1})).find("pad: [2, 3] with 3 edges") == 0);
  CHECK(message(tril(get(zeros(*graph, dims({3}))))).find("tril: [3]: expected matrices") == 0);
  CHECK(message(flip(a, {0, -2})).find("dimension 1 of [2, 3] is named twice") != std::string::npos);
  const auto x = get(zeros(*graph, dims({1, 3, 4, 4}))), w = get(zeros(*graph, dims({2, 2, 3, 3})));
  CHECK(message(conv2d(x, w)).find("conv2d: [1, 3, 4, 4] with a weight of [2, 2, 3, 3] in 1 groups") == 0);
  CHECK(message(conv2d(x, get(zeros(*graph, dims({2, 3, 5, 1}))))).find("the window does not fit") !=
        std::string::npos);
  CHECK(message(conv2d(x, get(zeros(*graph, dims({2, 3, 1, 1}))), {}, {{0, 1}})).find("stride {0, 1}") !=
        std::string::npos);
  CHECK(message(conv1d(x, w)).find("conv1d: [1, 3, 4, 4]") == 0);
  CHECK(message(max_pool2d(x, {{2, 2}, {1, 1}, {2, 0}})).find("max_pool2d: [1, 3, 4, 4] with a window of {2, 2}") == 0);
  CHECK(message(batch_norm(x, {a, {}, {}, {}})).find("batch_norm: [1, 3, 4, 4] with a weight of [2, 3]") == 0);
  CHECK(message(batch_norm(a, {{}, {}, {}, {}, false})).find("needs running statistics") != std::string::npos);
  CHECK(message(group_norm(x, 2)).find("group_norm: [1, 3, 4, 4] in 2 groups") == 0);
  CHECK(message(rms_norm(a, a)).find("rms_norm: [2, 3] with a weight of [2, 3]") == 0);
  CHECK(message(rope(a, a, a)).find("rope: [2, 3] with angles of [2, 3]") == 0);
  CHECK(message(mse_loss(a, b)).find("mse_loss: [2, 3] with targets of [4, 5]") == 0);
  CHECK(message(nll_loss(a, i)).find("nll_loss: [2, 3] with labels i64[2, 2]") == 0);
  const Attention masked{false, 0, a}, sized{false, 0, {}, i};
  CHECK(message(scaled_dot_product_attention(x, x, x, masked))
            .find("a mask of f32[2, 3] for scores of f32[1, 3, 4, 4]") != std::string::npos);
  CHECK(message(scaled_dot_product_attention(x, x, x, sized)).find("lengths of i64[2, 2]") != std::string::npos);
  CHECK(message(einsum("ij,jk", {a, b})) == "einsum: \"ij,jk\": 'j' is 3 in [2, 3] and 4 in [4, 5]");
  CHECK(message(einsum("ij,jk", {a})) == "einsum: \"ij,jk\" names 2 operands, not 1");
  CHECK(message(einsum("ii", {a})).find("'i' is named twice in one operand") != std::string::npos);
  CHECK(message(einsum("ijk", {a})).find("'ijk' names 3 dimensions of [2, 3]") != std::string::npos);
  CHECK(message(einsum("ij->k", {a})).find("'k' of the result is in no operand") != std::string::npos);
  CHECK(message(fft(a)).find("fft: [2, 3]: expected complex numbers") == 0);
  CHECK(message(irfft(get(zeros(*graph, dims({4, 2}))), 9)).find("irfft: [4, 2] to 9 numbers: they come from 5 bins") ==
        0);
  CHECK(message(prod(a, {2})).find("dimension 3") != std::string::npos);
  CHECK(message(cross_entropy(a, get(zeros(*graph, dims({2}), DType::i64)), -100, 2)).find("label smoothing of 2") !=
        std::string::npos);
  CHECK(message(add(a, Tensor{})).find("empty") != std::string::npos);
  CHECK(message(cat({a, b}, 0)).find("[2, 3] and [4, 5]") != std::string::npos);
  CHECK(message(full(*graph, dims({-1}), 0)).find("-1") != std::string::npos);
}

TEST_CASE("indices out of range are reported by the read", "[unit][tensor]") {
  auto graph = new_graph();
  const auto a = get(zeros(*graph, dims({2, 3})));
  const auto i = get(from_numbers(*graph, dims({1, 2}), DType::i32, {0, 3}));
  const auto message = [&](Result<Tensor> r) { return graph->read_blocking(get(std::move(r))).error().message; };
  CHECK(message(gather(a, 1, i)) == "gather: index 3 at position 1; there are indices 0 to 2");
  CHECK(message(scatter(a, 0, i, get(zeros(*graph, dims({1, 2}))), true)).find("scatter_add: index 3 at position 1") ==
        0);
  CHECK(message(index_select(a, 1, get(from_numbers(*graph, dims({1}), DType::i8, {-1}))))
            .find("index_select: index -1 at position 0") == 0);
}

TEST_CASE("lines, identities, and NaN in order", "[unit][tensor]") {
  auto graph = new_graph();
  CHECK(numbers(get(linspace(*graph, 1, 2, 5))) == Numbers{1, 1.25, 1.5, 1.75, 2});
  CHECK(numbers(get(linspace(*graph, 3, 9, 1))) == Numbers{3});
  CHECK(numbers(get(eye(*graph, 2, 3, DType::bf16))) == Numbers{1, 0, 0, 0, 1, 0});
  const auto x = get(from_numbers(*graph, dims({4}), DType::f32, {NAN, 2, 2, -1}));
  CHECK(numbers(get(sort(x, 0)).places) == Numbers{3, 1, 2, 0});
  CHECK(numbers(get(sort(x, 0, true)).places) == Numbers{0, 1, 2, 3});
  CHECK(numbers(get(topk(x, 2, 0)).places) == Numbers{0, 1});
  CHECK(std::isnan(numbers(get(max(x)))[0]));
  // Long rows and columns run as vectors; a NaN comes through wherever it stands.
  const auto big = get(randn(*graph, dims({70, 130})));
  const auto v = numbers(big);
  double high = -1e9, third = 1e9;
  for (std::size_t i = 0; i < v.size(); ++i) {
    high = std::max(high, v[i]);
    if (i % 130 == 3) third = std::min(third, v[i]);
  }
  CHECK(get(graph->item_blocking(get(max(big)))) == high);
  CHECK(numbers(get(min(big, {0})))[3] == third);
  CHECK(numbers(get(min(get(transpose(big, 0, 1)), {1})))[3] == third);
  const auto spoilt = get(masked_fill(big, get(eq(big, high)), NAN));
  CHECK(std::isnan(get(graph->item_blocking(get(max(spoilt))))));
  int nans = 0;
  for (const double m : numbers(get(max(spoilt, {0})))) nans += std::isnan(m);
  for (const double m : numbers(get(min(spoilt, {1})))) nans += std::isnan(m);
  CHECK(nans == 2);
  CHECK(numbers(get(argmin(x, 0))) == Numbers{0});
  CHECK(numbers(get(isnan(x))) == Numbers{1, 0, 0, 0});
  CHECK(get(graph->item_blocking(get(logsumexp(get(full(*graph, dims({2}), -HUGE_VAL)))))) == -HUGE_VAL);
  CHECK(get(graph->item_blocking(get(any(get(zeros(*graph, dims({0}))))))) == 0);
  CHECK(get(graph->item_blocking(get(all(get(zeros(*graph, dims({0}))))))) == 1);
}

TEST_CASE("batch_norm moves the running statistics", "[unit][tensor]") {
  auto graph = new_graph();
  const auto x = get(from_numbers(*graph, dims({2, 2}), DType::f32, {1, 10, 3, 20}));
  BatchNorm how;
  how.running_mean = get(zeros(*graph, dims({2})));
  how.running_var = get(ones(*graph, dims({2})));
  CHECK(numbers(get(batch_norm(x, how)))[0] == Approx(-1).epsilon(1e-4));
  check_near(numbers(how.running_mean), {0.2, 1.5}, 1e-6, "mean");
  check_near(numbers(how.running_var), {0.9 + 0.1 * 2, 0.9 + 0.1 * 50}, 1e-6, "variance");  // divided by n - 1
  how.training = false;
  CHECK(numbers(get(batch_norm(x, how)))[0] == Approx((1 - 0.2) / std::sqrt(1.1 + 1e-5)));
  CHECK(numbers(how.running_mean)[0] == Approx(0.2));
}

TEST_CASE("a half type far from zero is normalised with f32's digits", "[unit][tensor]") {
  auto graph = new_graph();
  for (const DType t : {DType::bf16, DType::f16}) {
    const auto x = get(from_numbers(*graph, dims({1, 2, 2}), t, {100, 99, -200, -196}));
    BatchNorm how;
    how.running_mean = get(from_numbers(*graph, dims({2}), DType::f32, {100, -200}));
    how.running_var = get(from_numbers(*graph, dims({2}), DType::f32, {0.25, 4}));
    how.weight = get(from_numbers(*graph, dims({2}), t, {1, 1.5}));
    how.bias = get(from_numbers(*graph, dims({2}), t, {0, 0.5}));
    how.training = false;
    const std::vector<double> want{0, -2, 0.5, 3.5};
    check_near(numbers(get(batch_norm(x, how))), want, t == DType::bf16 ? 8e-3 : 1e-3, name_of(t));
    Compiled call(graph);
    for (int i = 0; i < 2; ++i) {  // the trace, then its replay
      const bool replayed = get(call.begin({x}, "")) == Compiled::Next::replayed;
      const auto y = replayed ? call.outputs() : get(call.end({get(batch_norm(call.arguments()[0], how))}));
      check_near(numbers(y[0]), want, t == DType::bf16 ? 8e-3 : 1e-3, name_of(t));
    }
  }
}

TEST_CASE("random numbers: repeatable, and of the right kind", "[unit][tensor]") {
  auto graph = new_graph();
  const auto first = bits(get(randn(*graph, dims({1001}))));
  const auto second = bits(get(randn(*graph, dims({1001}))));
  CHECK(first != second);
  graph->manual_seed(7);
  CHECK(bits(get(randn(*graph, dims({1001})))) == first);
  const auto n = get(randn(*graph, dims({100000})));
  CHECK(get(graph->item_blocking(get(mean(n)))) == Approx(0).margin(0.02));
  CHECK(get(graph->item_blocking(get(mean(get(mul(n, n)))))) == Approx(1).margin(0.03));
  const auto u = get(rand(*graph, dims({100000})));
  CHECK(get(graph->item_blocking(get(mean(u)))) == Approx(0.5).margin(0.01));
  CHECK(get(graph->item_blocking(get(max(u)))) < 1);
  const auto kept =
      get(graph->item_blocking(get(sum(get(ne(get(dropout(get(ones(*graph, dims({100000}))), 0.25)), 0))))));
  CHECK(kept == Approx(75000).margin(1000));
  const auto r = numbers(get(randint(*graph, -3, 3, dims({1000}))));
  CHECK(*std::min_element(r.begin(), r.end()) == -3);
  CHECK(*std::max_element(r.begin(), r.end()) == 2);
  const auto picks = numbers(
      get(multinomial(get(expand(get(from_numbers(*graph, dims({1, 3}), DType::f32, {1, 0, 3})), dims({4000, 3}))))));
  CHECK(std::count(picks.begin(), picks.end(), 1.0) == 0);
  CHECK(double(std::count(picks.begin(), picks.end(), 2.0)) == Approx(3000).margin(150));
}

}  // namespace rille::tensor
