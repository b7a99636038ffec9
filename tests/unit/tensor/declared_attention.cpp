// Declarations: attention with masks, lengths and shared heads; rotary embedding; normalisation by root mean
// square; losses.
#include "operation.hpp"

namespace rille::tensor::declared {

namespace {

constexpr int batch = 2, heads = 4, queries = 3, keys = 5, width = 4;

// q [2, 4, 3, 4], k and v [2, g, 5, 4]; bias(b, h, i, j) is added to the scores, NAN: not seen.
template <class F>
Numbers attended(const std::vector<Numbers>& in, int groups, F bias) {
  Numbers out;
  for (int b = 0; b < batch; ++b)
    for (int h = 0; h < heads; ++h)
      for (int i = 0; i < queries; ++i) {
        const int g = b * groups + h / (heads / groups);
        Numbers w(keys, 0);
        double sum = 0;
        for (int j = 0; j < keys; ++j) {
          const double add = bias(b, h, i, j);
          if (std::isnan(add)) continue;
          double dot = 0;
          for (int c = 0; c < width; ++c)
            dot += in[0][((b * heads + h) * queries + i) * width + c] * in[1][(g * keys + j) * width + c];
          sum += w[j] = std::exp(dot / std::sqrt(double(width)) + add);
        }
        for (int c = 0; c < width; ++c) {
          double o = 0;
          for (int j = 0; j < keys && sum > 0; ++j) o += w[j] / sum * in[2][(g * keys + j) * width + c];
          out.push_back(o);
        }
      }
  return out;
}

std::vector<Argument> operands(int groups) {
  return {{dims({batch, heads, queries, width})},
          {dims({batch, groups, keys, width})},
          {dims({batch, groups, keys, width})}};
}

void attentions(std::vector<Operation>& r) {
  r.push_back({"attention with shared heads", operands(2),
               [](auto& t) { return scaled_dot_product_attention(t[0], t[1], t[2], Attention{}); },
               [](auto& in) { return attended(in, 2, [](int, int, int, int) { return 0.0; }); }});
  r.push_back({"attention, one head of keys, causal", operands(1),
               [](auto& t) { return scaled_dot_product_attention(t[0], t[1], t[2], Attention{true}); },
               [](auto& in) {
                 return attended(in, 1, [](int, int, int i, int j) { return j <= i + keys - queries ? 0.0 : NAN; });
               }});
  auto masked = operands(4);
  masked.push_back({dims({queries, keys}), -1, 1, false});
  r.push_back({"attention with a mask", masked,
               [](auto& t) {
                 const Attention how{false, 0, get(gt(t[3], 0))};
                 return scaled_dot_product_attention(t[0], t[1], t[2], how);
               },
               [](auto& in) {
                 return attended(in, 4, [&](int, int, int i, int j) { return in[3][i * keys + j] > 0 ? 0.0 : NAN; });
               }});
  masked.back() = {dims({batch, 1, queries, keys}), -2, 2, false};
  r.push_back({"attention with added scores", masked,
               [](auto& t) {
                 return scaled_dot_product_attention(t[0], t[1], t[2], Attention{false, 0, t[3]});
               },
               [](auto& in) {
                 return attended(in, 4, [&](int b, int, int i, int j) { return in[3][(b * queries + i) * keys + j]; });
               }});
  r.push_back({"attention with lengths", operands(2),
               [](auto& t) {
                 const Attention how{true, 0, {}, ids_of(t[0], {2, 4}, dims({2}), DType::i32)};
                 return scaled_dot_product_attention(t[0], t[1], t[2], how);
               },
               [](auto& in) {
                 return attended(in, 2, [&](int b, int, int i, int j) {
                   return j < (b ? 4 : 2) && j <= i + keys - queries ? 0.0 : NAN;
                 });
               }});
  r.push_back(
      {"attention that sees nothing", operands(4),
       [](auto& t) {
         const Attention how{false, 0, {}, ids_of(t[0], {0, 3}, dims({2}))};
         return scaled_dot_product_attention(t[0], t[1], t[2], how);
       },
       [](auto& in) { return attended(in, 4, [&](int b, int, int, int j) { return b && j < 3 ? 0.0 : NAN; }); }});
  // More queries than one block.
  r.push_back({"attention of many queries",
               {{dims({1, 2, 70, 4})}, {dims({1, 1, 70, 4})}, {dims({1, 1, 70, 4})}},
               [](auto& t) { return scaled_dot_product_attention(t[0], t[1], t[2], Attention{true}); },
               [](auto& in) {
                 Numbers out;
                 for (int h = 0; h < 2; ++h)
                   for (int i = 0; i < 70; ++i) {
                     Numbers w;
                     double sum = 0;
                     for (int j = 0; j <= i; ++j) {
                       double dot = 0;
                       for (int c = 0; c < 4; ++c) dot += in[0][(h * 70 + i) * 4 + c] * in[1][j * 4 + c];
                       w.push_back(std::exp(dot / 2));
                       sum += w.back();
                     }
                     for (int c = 0; c < 4; ++c) {
                       double o = 0;
                       for (int j = 0; j <= i; ++j) o += w[j] / sum * in[2][j * 4 + c];
                       out.push_back(o);
                     }
                   }
                 return out;
               }});
}

Numbers turned(const Numbers& x, bool pairs) {  // [2, 3, 4]
  Numbers out(x.size());
  for (int r = 0; r < 6; ++r)
    for (int i = 0; i < 2; ++i) {
      const double angle = (r % 3) * std::pow(10000, -i / 2.0);
      const std::size_t a = std::size_t(r * 4 + (pairs ? 2 * i : i)), b = pairs ? a + 1 : a + 2;
      out[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
      out[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
    }
  return out;
}

}  // namespace

std::vector<Operation> attention_and_losses() {
  std::vector<Operation> r;
  attentions(r);
  for (const bool pairs : {false, true}) {
    r.push_back({pairs ? "rope of neighbours" : "rope",
                 {{dims({2, 3, 4})}},
                 [pairs](auto& t) {
                   const auto angles = get(rope_angles(t[0].graph(), 3, 4, 10000, stats_type(t[0].dtype())));
                   return rope(t[0], angles.cos, angles.sin, pairs);
                 },
                 [pairs](auto& in) { return turned(in[0], pairs); }});
  }
  r.push_back({"rms_norm",
               {{dims({3, 4})}, {dims({4})}},
               [](auto& t) { return rms_norm(t[0], t[1]); },
               [](auto& in) {
                 Numbers out;
                 for (int i = 0; i < 12; ++i) {
                   double s = 0;
                   for (int j = 0; j < 4; ++j) s += in[0][i / 4 * 4 + j] * in[0][i / 4 * 4 + j];
                   out.push_back(in[0][i] / std::sqrt(s / 4 + 1e-6) * in[1][i % 4]);
                 }
                 return out;
               }});
  const std::vector<Argument> two{{dims({3, 4})}, {dims({3, 4}), 0, 1, false}};
  const auto loss_of = [](auto each, bool mean) {
    return [=](const std::vector<Numbers>& in) {
      double s = 0;
      for (std::size_t i = 0; i < in[0].size(); ++i) s += each(in[0][i], in[1][i]);
      return Numbers{mean ? s / double(in[0].size()) : s};
    };
  };
  r.push_back({"mse_loss", two, [](auto& t) { return mse_loss(t[0], t[1]); },
               loss_of([](double x, double y) { return (x - y) * (x - y); }, true)});
  r.push_back({"mse_loss, summed", two, [](auto& t) { return mse_loss(t[0], t[1], Reduce::sum); },
               loss_of([](double x, double y) { return (x - y) * (x - y); }, false)});
  r.push_back({"l1_loss", two, [](auto& t) { return l1_loss(t[0], t[1]); },
               loss_of([](double x, double y) { return std::fabs(x - y); }, true)});
  r.push_back({"smooth_l1_loss", two, [](auto& t) { return smooth_l1_loss(t[0], t[1]); },
               loss_of(
                   [](double x, double y) {
                     const double d = std::fabs(x - y);
                     return d < 1 ? d * d / 2 : d - 0.5;
                   },
                   true)});
  r.push_back({"binary_cross_entropy_with_logits", two,
               [](auto& t) { return binary_cross_entropy_with_logits(t[0], t[1]); },
               loss_of([](double x, double y) { return std::log1p(std::exp(x)) - x * y; }, true)});
  r.push_back({"nll_loss",
               {{dims({3, 4})}},
               [](auto& t) {
                 return nll_loss(t[0], ids_of(t[0], {1, -100, 3}, dims({3})));
               },
               [](auto& in) { return Numbers{-(in[0][1] + in[0][11]) / 2}; }});
  r.push_back({"cross_entropy, smoothed",
               {{dims({3, 4})}},
               [](auto& t) {
                 return cross_entropy(t[0], ids_of(t[0], {1, 3, -1}, dims({3})), -1, 0.2);
               },
               [](auto& in) {
                 const auto y = softmax_rows(in[0], 4);
                 double s = 0;
                 for (int row = 0; row < 2; ++row)
                   for (int j = 0; j < 4; ++j) s -= (j == (row ? 3 : 1) ? 0.85 : 0.05) * std::log(y[row * 4 + j]);
                 return Numbers{s / 2};
               }});
  return r;
}

}  // namespace rille::tensor::declared
