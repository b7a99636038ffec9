// A byte-level GPT in plain calls, as the nn library would make it; for tests and the benchmark.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "runtime/compute/tensor/autograd.hpp"
#include "runtime/compute/tensor/optimizer.hpp"

namespace rille::tensor {

struct GptConfig {
  std::int64_t layers = 4, heads = 4, width = 128, context = 128, vocab = 256;
};

struct Gpt {
  GptConfig config;
  std::vector<std::pair<std::string, Tensor>> parameters;
  std::size_t next = 0;

  static Result<Gpt> make(Graph& g, GptConfig c, DType dtype = DType::f32) {
    Gpt m{c, {}, 0};
    const auto add_normal = [&](std::string name, Dims shape, double scale) -> Result<void> {
      RILLE_TRY(const auto n, randn(g, shape, dtype));
      RILLE_TRY(auto p, mul(n, scale));
      RILLE_CHECK(p.set_requires_grad(true));
      m.parameters.emplace_back(std::move(name), p);
      return success();
    };
    const auto add_full = [&](std::string name, std::int64_t n, double value) -> Result<void> {
      Dims d;
      d.push(n);
      RILLE_TRY(auto p, full(g, d, value, dtype));
      RILLE_CHECK(p.set_requires_grad(true));
      m.parameters.emplace_back(std::move(name), p);
      return success();
    };
    const auto two = [](std::int64_t a, std::int64_t b) {
      Dims d;
      d.push(a);
      d.push(b);
      return d;
    };
    const auto w = c.width;
    RILLE_CHECK(add_normal("wte", two(c.vocab, w), 0.02));
    RILLE_CHECK(add_normal("wpe", two(c.context, w), 0.02));
    for (std::int64_t i = 0; i < c.layers; ++i) {
      const auto p = "blocks." + std::to_string(i) + ".";
      const double deep = 0.02 / std::sqrt(2.0 * double(c.layers));
      RILLE_CHECK(add_full(p + "ln1.weight", w, 1));
      RILLE_CHECK(add_full(p + "ln1.bias", w, 0));
      RILLE_CHECK(add_normal(p + "qkv.weight", two(3 * w, w), 0.02));
      RILLE_CHECK(add_full(p + "qkv.bias", 3 * w, 0));
      RILLE_CHECK(add_normal(p + "proj.weight", two(w, w), deep));
      RILLE_CHECK(add_full(p + "proj.bias", w, 0));
      RILLE_CHECK(add_full(p + "ln2.weight", w, 1));
      RILLE_CHECK(add_full(p + "ln2.bias", w, 0));
      RILLE_CHECK(add_normal(p + "fc.weight", two(4 * w, w), 0.02));
      RILLE_CHECK(add_full(p + "fc.bias", 4 * w, 0));
      RILLE_CHECK(add_normal(p + "out.weight", two(w, 4 * w), deep));
      RILLE_CHECK(add_full(p + "out.bias", w, 0));
    }
    RILLE_CHECK(add_full("ln.weight", w, 1));
    RILLE_CHECK(add_full("ln.bias", w, 0));
    return m;
  }

  const Tensor& take() { return parameters[next++].second; }

  // ids [b, t] -> logits [b, t, vocab]; the head is wte, transposed.
  Result<Tensor> forward(const Tensor& ids) {
    next = 0;
    const Tensor wte = take(), wpe = take();
    const auto b = ids.size(0), t = ids.size(1), w = config.width, d = w / config.heads;
    Dims split, joined;
    for (auto n : {b, t, config.heads, d}) split.push(n);
    for (auto n : {b, t, w}) joined.push(n);
    RILLE_TRY(const auto tokens, embedding(wte, ids));
    RILLE_TRY(const auto places, narrow(wpe, 0, 0, t));
    RILLE_TRY(auto x, add(tokens, places));
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const Tensor w1 = take(), b1 = take(), qkv_w = take(), qkv_b = take(), proj_w = take(), proj_b = take();
      const Tensor w2 = take(), b2 = take(), fc_w = take(), fc_b = take(), out_w = take(), out_b = take();
      RILLE_TRY(const auto n1, layer_norm(x, w1, b1));
      RILLE_TRY(const auto qkv, linear(n1, qkv_w, qkv_b));
      RILLE_TRY(auto parts, chunk(qkv, 3, 2));
      for (auto& p : parts) {
        RILLE_TRY(const auto heads, reshape(p, split));
        RILLE_TRY(p, transpose(heads, 1, 2));
      }
      RILLE_TRY(const auto o, scaled_dot_product_attention(parts[0], parts[1], parts[2], true));
      RILLE_TRY(const auto turned, transpose(o, 1, 2));
      RILLE_TRY(const auto flat, reshape(turned, joined));
      RILLE_TRY(const auto attended, linear(flat, proj_w, proj_b));
      RILLE_TRY(x, add(x, attended));
      RILLE_TRY(const auto n2, layer_norm(x, w2, b2));
      RILLE_TRY(const auto h, linear(n2, fc_w, fc_b));
      RILLE_TRY(const auto a, gelu(h));
      RILLE_TRY(const auto m, linear(a, out_w, out_b));
      RILLE_TRY(x, add(x, m));
    }
    const Tensor lw = take(), lb = take();
    RILLE_TRY(const auto n, layer_norm(x, lw, lb));
    return linear(n, wte);
  }

  Result<Tensor> loss(const Tensor& ids, const Tensor& labels) {
    RILLE_TRY(const auto logits, forward(ids));
    return cross_entropy(logits, labels);
  }
};

}  // namespace rille::tensor
