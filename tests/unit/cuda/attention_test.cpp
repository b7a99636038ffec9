// Attention with masks and numbers of keys: the kernels for tensor cores through the shim, beside the CPU's kernel and
// beside f64; and the reason given where they cannot be used.
#include <cstdlib>

#include "compared.hpp"
#include "standin.hpp"

namespace rille::tensor {
namespace {

constexpr int batch_size = 2, heads = 2, queries = 70, keys = 133;

// The ways of seeing: by name, with what they need in type t.
std::vector<std::pair<std::string, Attention>> sights(Graph& g, DType t) {
  const auto seen = get(lt(get(rand(g, dims({batch_size, 1, queries, keys}))), 0.5));
  const auto not_first = get(ge(get(reshape(get(arange(g, 0, queries, 1)), dims({queries, 1}))), 1));
  const auto mask = get(logical_and(seen, not_first));  // the first query sees nothing
  const auto added = get(cast(get(randn(g, dims({heads, queries, keys}))), t));
  const auto lengths = get(from_numbers(g, dims({batch_size}), DType::i64, {0, 75}));
  const double least = t == DType::f16 ? -65504 : -3e38;  // as others mark what is not to be seen
  const auto marked = get(where(mask, get(full(g, dims({1}), 0, t)), get(full(g, dims({1}), least, t))));
  return {{"bool", {false, 0, mask}},
          {"bool, causal", {true, 0, mask}},
          {"added, causal", {true, 0.3, added}},
          {"lengths", {false, 0, {}, lengths}},
          {"lengths, causal, added", {true, 0, added, lengths}},
          {"marked", {false, 0, marked}}};
}

struct Attended {
  Tensor q, k, v, o;
};
Attended attended(Graph& g, DType t, std::int64_t d, std::int64_t groups, const Attention& how, const Attended* like) {
  const auto leaf = [&](const Tensor& known, std::int64_t h, std::int64_t n) {
    if (!like) return leaf_of(get(randn(g, dims({batch_size, h, n, d}))), t);
    Tensor copy = get(from_numbers(g, dims({batch_size, h, n, d}), t, numbers(known)));
    get(copy.set_requires_grad(true));
    return copy;
  };
  Attended a{leaf(like ? like->q : Tensor(), heads, queries),
             leaf(like ? like->k : Tensor(), groups, keys),
             leaf(like ? like->v : Tensor(), groups, keys),
             {}};
  a.o = get(scaled_dot_product_attention(a.q, a.k, a.v, how));
  const auto weight = get(sin(get(cast(get(arange(g, 0, double(a.o.count()), 1)), DType::f32))));
  get(backward(get(sum(get(mul(a.o, get(cast(get(reshape(weight, a.o.shape())), t))))))));
  return a;
}

double distance(const std::vector<double>& got, const std::vector<double>& want) {
  double wrong = 0, all = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    wrong += (got[i] - want[i]) * (got[i] - want[i]);
    all += want[i] * want[i];
  }
  return got.size() == want.size() ? std::sqrt(wrong / all) : 1;
}

}  // namespace

TEST_CASE("attention with masks and lengths on tensor cores is the CPU's", "[unit][cuda][checked][long]") {
  const bool every = std::getenv("RILLE_LONG") != nullptr;
  Compared compared(90);
  Graph& g = *compared.graph;
  for (const DType t : {DType::bf16, DType::f16})
    for (const std::int64_t d : {64, 128}) {
      if ((d == 128) != (t == DType::f16)) continue;  // the emulated tensor cores are slow
      for (const auto& [name, how] : sights(g, t)) {
        if (d == 128 && !every && name != "lengths, causal, added") continue;
        compared.now(name + ", heads of " + std::to_string(d));
        const auto a = attended(g, t, d, name == "lengths" ? 1 : 2, how, nullptr);
        for (const auto& leaf : {a.q, a.k, a.v}) get(g.read_blocking(leaf.grad()));
      }
    }
  compared.check();
  for (const char* kernel : {"attention_tensor_masked_64_bf16", "attention_tensor_masked_grad_queries_64_bf16",
                             "attention_tensor_masked_grad_keys_128_f16"})
    CHECK(compared.kernels().count(kernel) == 1);
  for (const char* kernel : {"attention_bf16", "attention_f16"}) CHECK(compared.kernels().count(kernel) == 0);
}

TEST_CASE("attention on tensor cores is near f64's, gradients too", "[cuda][long]") {
  const bool every = std::getenv("RILLE_LONG") != nullptr;
  const test::Standin standin;
  const auto g = standin.graph(), wide = new_graph();
  for (const DType t : {DType::bf16, DType::f16}) {
    for (const auto& [name, how] : sights(*g, t)) {
      if ((t == DType::f16 || !every) && name != (t == DType::f16 ? "marked" : "bool, causal")) continue;
      const auto a = attended(*g, t, 64, 2, how, nullptr);
      Attention exact = how;
      if (how.mask) {
        const auto copy = get(from_numbers(*wide, how.mask.shape(), DType::f64, numbers(how.mask)));
        exact.mask = how.mask.dtype() == DType::boolean ? get(gt(copy, 0)) : copy;
      }
      if (how.lengths) exact.lengths = get(from_numbers(*wide, dims({batch_size}), DType::i64, numbers(how.lengths)));
      const auto b = attended(*wide, DType::f64, 64, 2, exact, &a);
      const double bound = t == DType::bf16 ? 1e-2 : 1.5e-3;
      INFO(name_of(t) << ", " << name);
      CHECK(distance(numbers(a.o), numbers(b.o)) < bound);
      for (const auto& [mine, other] : {std::pair{a.q, b.q}, std::pair{a.k, b.k}, std::pair{a.v, b.v}})
        CHECK(distance(numbers(mine.grad()), numbers(other.grad())) < bound);
    }
  }
  CHECK(g->device()->executor()->fallbacks().empty());
  CHECK(std::string(standin.report().wrong) == "");
}

TEST_CASE("attention in half types without tensor cores is reported", "[cuda]") {
  const test::Standin standin;
  const auto g = standin.graph();
  const auto told = [&](DType t, std::int64_t d) {
    const auto x = leaf_of(get(randn(*g, dims({1, 1, 3, d}))), t);
    numbers(get(scaled_dot_product_attention(x, x, x, Attention{true})));
    return g->device()->executor()->fallbacks();
  };
  CHECK(told(DType::f32, 24).empty());
  CHECK(told(DType::bf16, 64).empty());
  const auto found = told(DType::bf16, 24);
  REQUIRE(found.size() == 1);
  CHECK(found[0].library == "tensor cores");
  CHECK(found[0].operation == "attention");
  CHECK(found[0].why == "its kernels for tensor cores are for heads of 64 and 128 numbers");
}

}  // namespace rille::tensor
