// Convolutions by cuDNN and Fourier transforms by cuFFT (tests/support/cudnn.cpp and cufft.cpp play them), beside the
// CPU; and the own kernels where a library is left out or declines.
#include <algorithm>
#include <cmath>

#include "standin.hpp"

namespace rille::tensor {
namespace {

using test::Standin;

struct Without {
  explicit Without(const char* words) { ::setenv("RILLE_CUDA_WITHOUT", words, 1); }
  ~Without() { ::unsetenv("RILLE_CUDA_WITHOUT"); }
};

// Exact sums; of half types small numbers, so that f16 holds the squares of their sums.
Tensor filled(Graph& g, const Dims& shape, DType dtype, int seed) {
  std::vector<double> v(std::size_t(shape.count()));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = (double((i * 7 + std::size_t(seed) * 3) % 11) - 5) / (is_half(dtype) ? 8 : 1);
  return get(from_numbers(g, shape, dtype, v));
}

using Values = std::vector<std::vector<double>>;

// y and all gradients.
void convolved(Values& out, const Tensor& x, const Tensor& weight, const Tensor& bias, const Convolution& how) {
  for (const Tensor& t : {x, weight, bias})
    if (t) get(Tensor(t).set_requires_grad(true));
  const Tensor y = get(conv2d(x, weight, bias, how));
  out.push_back(numbers(y));
  get(backward(get(sum(get(mul(y, y))))));
  for (const Tensor& t : {x, weight, bias})
    if (t) out.push_back(numbers(t.grad()));
}

Values convolutions(Graph& g, DType t) {
  Values out;
  const auto x = [&](int seed) { return filled(g, dims({2, 4, 7, 6}), t, seed); };
  convolved(out, x(1), filled(g, dims({3, 4, 3, 3}), t, 2), filled(g, dims({3}), t, 3), {});
  convolved(out, x(4), filled(g, dims({6, 2, 3, 2}), t, 5), {}, {{2, 1}, {1, 2}, {1, 2}, 2});
  const Tensor last = get(clone(get(permute(filled(g, dims({3, 3, 3, 4}), t, 6), dims({0, 3, 1, 2})))));
  convolved(out, x(7), last, {}, {{1, 1}, {1, 1}, {1, 1}, 1});
  Tensor turned = get(permute(filled(g, dims({2, 7, 6, 4}), t, 8), dims({0, 3, 1, 2})));  // channels last
  out.push_back(numbers(get(conv2d(turned, filled(g, dims({3, 4, 1, 1}), t, 9), {}, {}))));
  out.push_back(
      numbers(get(conv2d(turned, get(permute(filled(g, dims({3, 2, 2, 4}), t, 10), dims({0, 3, 1, 2}))), {}, {}))));
  out.push_back(numbers(get(conv1d(filled(g, dims({2, 4, 9}), t, 11), filled(g, dims({5, 4, 3}), t, 12), {}, {}))));
  return out;
}

// Half types: the library rounds before it adds a bias, and a gradient starts from what was rounded. So a few units in
// the last place of the largest.
void compare_with_cpu(const Standin& standin, DType t) {
  const double unit = t == DType::bf16 ? 0x1p-8 : t == DType::f16 ? 0x1p-11 : 0;
  const auto expected = convolutions(*new_graph(), t), got = convolutions(*standin.graph(), t);
  REQUIRE(expected.size() == got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO(name_of(t) << ", value " << i);
    REQUIRE(got[i].size() == expected[i].size());
    double most = 0, worst = 0;
    for (std::size_t k = 0; k < got[i].size(); ++k) {
      most = std::max(most, std::abs(expected[i][k]));
      worst = std::max(worst, std::abs(got[i][k] - expected[i][k]));
    }
    CHECK(most > 0);
    CHECK(worst <= 4 * unit * most);
  }
  CHECK(std::string(standin.report().wrong) == "");
}

TEST_CASE("convolutions by a library are the CPU's, gradients too", "[cuda]") {
  for (const auto t : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    const Standin standin;
    compare_with_cpu(standin, t);
    CHECK(standin.report().library_calls == 13);  // three times three, three, one bias
  }
}

// The library gets the strides of a packed tensor there: the stand-in refuses others.
TEST_CASE("convolutions of dimensions with one element are the library's", "[cuda]") {
  const Standin standin;
  const auto results = [](Graph& g) {
    Values out;
    const auto add = [&](const Tensor& x, const Dims& weight) {
      out.push_back(numbers(get(conv2d(x, filled(g, weight, DType::f32, 2), {}, {}))));
    };
    add(filled(g, dims({2, 1, 5, 4}), DType::f32, 1), dims({3, 1, 3, 3}));  // one channel
    add(filled(g, dims({1, 3, 5, 4}), DType::f32, 3), dims({1, 3, 2, 2}));  // one image, one channel out
    add(filled(g, dims({2, 3, 1, 6}), DType::f32, 4), dims({4, 3, 1, 3}));  // one row
    add(filled(g, dims({2, 3, 6, 1}), DType::f32, 5), dims({4, 3, 6, 1}));  // one column, one element out
    add(get(permute(filled(g, dims({2, 1, 6, 3}), DType::f32, 6), dims({0, 3, 1, 2}))), dims({4, 3, 1, 3}));
    add(get(narrow(filled(g, dims({2, 3, 5, 4}), DType::f32, 7), 1, 1, 1)), dims({2, 1, 2, 2}));  // one of three
    return out;
  };
  CHECK(results(*standin.graph()) == results(*new_graph()));
  CHECK(standin.report().library_calls == 6);
}

TEST_CASE("convolutions that the library declines are the own kernels'", "[cuda]") {
  const test::NoHalf declining;
  const Standin standin;
  for (const auto t : {DType::bf16, DType::f16}) compare_with_cpu(standin, t);
  CHECK(standin.report().library_calls == 0);
}

// The stand-in offers another algorithm first, that works with 40 MiB.
TEST_CASE("a convolution for whose working memory there is no room takes an algorithm that wants less", "[cuda]") {
  ::setenv("RILLE_TEST_LARGE_SCRATCH", "1", 1);
  for (const std::size_t memory_bytes : {std::size_t(1) << 30, std::size_t(32) << 20}) {
    test::standin::Options options;
    options.memory_bytes = memory_bytes;
    const Standin standin(options);
    const auto g = standin.graph();
    CHECK(convolutions(*g, DType::f32) == convolutions(*new_graph(), DType::f32));
    CHECK(standin.report().library_calls == 13);
    std::string said;
    for (const auto& f : g->device()->executor()->fallbacks()) said += f.library + ": " + f.why + "\n";
    const bool scarce = memory_bytes < std::size_t(40) << 20;
    INFO(said);
    CHECK((said.find("there is no memory for the 40 MiB that an algorithm works with: another algorithm that needs "
                     "less is used") != std::string::npos) == scarce);
    CHECK((said == "") != scarce);
  }
  ::unsetenv("RILLE_TEST_LARGE_SCRATCH");
}

TEST_CASE("without the libraries the own kernels convolve and transform", "[cuda]") {
  const Without none("cudnn,cufft");
  const Standin standin;
  const auto g = standin.graph();
  CHECK(convolutions(*g, DType::f32) == convolutions(*new_graph(), DType::f32));
  numbers(get(fft(filled(*g, dims({128, 2}), DType::f32, 1))));
  CHECK(standin.report().library_calls == 0);
}

// 1 + 2^-11 + 2^-12 becomes 1 + 2^-10.
TEST_CASE("convolutions are rounded to TF32 where it is asked for", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  for (const bool tf32 : {false, true}) {
    g->set_modes({.tf32 = tf32});
    const Tensor x = get(full(*g, dims({1, 1, 2, 2}), 1 + 0x1p-11 + 0x1p-12, DType::f32));
    const Tensor w = get(full(*g, dims({1, 1, 1, 1}), 1, DType::f32));
    CHECK(numbers(get(conv2d(x, w, {}, {})))[0] == (tf32 ? 1 + 0x1p-10 : 1 + 0x1p-11 + 0x1p-12));
  }
}

Values transforms(Graph& g, DType t) {
  Values out;
  const auto add = [&](Result<Tensor> r) { out.push_back(numbers(get(std::move(r)))); };
  add(fft(filled(g, dims({3, 64, 2}), t, 1)));
  add(ifft(filled(g, dims({3, 100, 2}), t, 2)));     // no power of two
  add(fft2(filled(g, dims({2, 66, 70, 2}), t, 3)));  // both along an inner dimension and rows
  add(rfft(filled(g, dims({5, 81}), t, 4)));
  add(irfft(filled(g, dims({5, 65, 2}), t, 5), 129));
  add(rfft2(filled(g, dims({2, 64, 96}), t, 6)));
  return out;
}

TEST_CASE("Fourier transforms by a library are the CPU's", "[cuda]") {
  for (const auto t : {DType::f32, DType::f64}) {
    const Standin standin;
    const auto expected = transforms(*new_graph(), t), got = transforms(*standin.graph(), t);
    REQUIRE(expected.size() == got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(name_of(t) << ", transform " << i);
      REQUIRE(expected[i].size() == got[i].size());
      double worst = 0, most = 0;
      for (std::size_t k = 0; k < got[i].size(); ++k) {
        worst = std::max(worst, std::abs(got[i][k] - expected[i][k]));
        most = std::max(most, std::abs(expected[i][k]));
      }
      CHECK(worst < most * (t == DType::f32 ? 1e-5 : 1e-12));
    }
    CHECK(standin.report().library_calls == 1 + 1 + 3 + 1 + 1 + 3);
    CHECK(std::string(standin.report().wrong) == "");
  }
}

TEST_CASE("short transforms are the own kernels'", "[cuda]") {
  const Standin standin;
  numbers(get(fft(filled(*standin.graph(), dims({4, 32, 2}), DType::f32, 1))));
  CHECK(standin.report().library_calls == 0);
}

TEST_CASE("what libraries compute is captured and replayed", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph(), cpu = new_graph();
  Compiled step(g);
  for (int i = 0; i < 5; ++i) {
    const auto compute = [](const Tensor& x) {
      const Tensor y = get(conv2d(x, get(full(x.graph(), dims({2, 2, 3, 3}), 2, DType::f32)), {}, {}));
      return get(fft(get(reshape(y, dims({2, 64, 2})))));
    };
    const Tensor x = filled(*g, dims({2, 2, 10, 10}), DType::f32, i);
    Tensor y;
    if (get(step.begin({x})) == Compiled::Next::call) y = get(step.end({compute(step.arguments()[0])}))[0];
    else y = step.outputs()[0];
    const auto got = numbers(y), expected = numbers(compute(filled(*cpu, dims({2, 2, 10, 10}), DType::f32, i)));
    for (std::size_t k = 0; k < got.size(); ++k) REQUIRE(got[k] == Approx(expected[k]).margin(1e-2));
  }
  CHECK(standin.report().graph_launches >= 3);
  CHECK(std::string(standin.report().wrong) == "");
}

}  // namespace
}  // namespace rille::tensor
