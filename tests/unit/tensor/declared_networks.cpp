// Declarations: what networks need
#include <algorithm>

#include "operation.hpp"

namespace rille::tensor::declared {
namespace {

Numbers layer_norm_rows(const std::vector<Numbers>& in, int n) {
  Numbers out(in[0].size());
  for (std::size_t r = 0; r < out.size(); r += n) {
    double m = 0, v = 0;
    for (int i = 0; i < n; ++i) m += in[0][r + i] / n;
    for (int i = 0; i < n; ++i) v += (in[0][r + i] - m) * (in[0][r + i] - m) / n;
    for (int i = 0; i < n; ++i) out[r + i] = (in[0][r + i] - m) / std::sqrt(v + 1e-5) * in[1][i] + in[2][i];
  }
  return out;
}

// q [b, h, t, d], k and v [b, h, s, d]
Numbers attention_of(const std::vector<Numbers>& in, int pairs_count, int t, int s, int d, bool causal) {
  Numbers out(in[0].size());
  for (int p = 0; p < pairs_count; ++p) {
    for (int i = 0; i < t; ++i) {
      const int keys = causal ? i + 1 + s - t : s;
      Numbers scores;
      for (int j = 0; j < keys; ++j) {
        double dot = 0;
        for (int c = 0; c < d; ++c) dot += in[0][(p * t + i) * d + c] * in[1][(p * s + j) * d + c];
        scores.push_back(dot / std::sqrt(double(d)));
      }
      const auto w = softmax_rows(scores, keys);
      for (int c = 0; c < d; ++c) {
        double o = 0;
        for (int j = 0; j < keys; ++j) o += w[j] * in[2][(p * s + j) * d + c];
        out[(p * t + i) * d + c] = o;
      }
    }
  }
  return out;
}

}  // namespace

std::vector<Operation> networks() {
  const auto a34 = Argument{dims({3, 4})};
  std::vector<Operation> r;
  r.push_back({"attention",
               {{dims({2, 2, 3, 4})}, {dims({2, 2, 5, 4})}, {dims({2, 2, 5, 4})}},
               [](auto& t) { return scaled_dot_product_attention(t[0], t[1], t[2], false); },
               [](auto& in) { return attention_of(in, 4, 3, 5, 4, false); }});
  r.push_back({"attention causal",
               {{dims({1, 2, 70, 4})}, {dims({1, 2, 70, 4})}, {dims({1, 2, 70, 4})}},
               [](auto& t) { return scaled_dot_product_attention(t[0], t[1], t[2], true); },
               [](auto& in) { return attention_of(in, 2, 70, 70, 4, true); }});
  r.push_back({"attention causal, more keys than queries",  // of a second tile a part, of widths that are no vectors
               {{dims({1, 1, 18, 6})}, {dims({1, 1, 69, 6})}, {dims({1, 1, 69, 6})}},
               [](auto& t) { return scaled_dot_product_attention(t[0], t[1], t[2], true); },
               [](auto& in) { return attention_of(in, 1, 18, 69, 6, true); }});
  r.push_back({"attention of one projection",
               {{dims({2, 3, 12})}},  // [b, t, 3 h d], h = 2, d = 2
               [](auto& t) -> Result<Tensor> {
                 auto parts = get(chunk(t[0], 3, 2));
                 for (auto& p : parts) p = get(transpose(get(reshape(p, dims({2, 3, 2, 2}))), 1, 2));
                 return reshape(
                     get(transpose(get(scaled_dot_product_attention(parts[0], parts[1], parts[2], true)), 1, 2)),
                     dims({2, 3, 4}));
               },
               [](auto& in) {
                 std::vector<Numbers> qkv(3, Numbers(24));
                 for (int b = 0; b < 2; ++b)
                   for (int t = 0; t < 3; ++t)
                     for (int k = 0; k < 3; ++k)
                       for (int h = 0; h < 2; ++h)
                         for (int d = 0; d < 2; ++d)
                           qkv[k][((b * 2 + h) * 3 + t) * 2 + d] = in[0][(b * 3 + t) * 12 + k * 4 + h * 2 + d];
                 const auto o = attention_of(qkv, 4, 3, 3, 2, true);
                 Numbers out(24);
                 for (int b = 0; b < 2; ++b)
                   for (int t = 0; t < 3; ++t)
                     for (int h = 0; h < 2; ++h)
                       for (int d = 0; d < 2; ++d) out[(b * 3 + t) * 4 + h * 2 + d] = o[((b * 2 + h) * 3 + t) * 2 + d];
                 return out;
               }});
  r.push_back({"layer_norm",
               {a34, {dims({4})}, {dims({4})}},
               [](auto& t) { return layer_norm(t[0], t[1], t[2]); },
               [](auto& in) { return layer_norm_rows(in, 4); }});
  r.push_back({"embedding",
               {{dims({5, 2})}},
               [](auto& t) {
                 return embedding(t[0], ids_of(t[0], {4, 0, 4}, dims({3})));
               },
               [](auto& in) { return Numbers{in[0][8], in[0][9], in[0][0], in[0][1], in[0][8], in[0][9]}; }});
  r.push_back({"cross_entropy",
               {a34},
               [](auto& t) {
                 return cross_entropy(t[0], ids_of(t[0], {1, 3, 0}, dims({3}), DType::u8));
               },
               [](auto& in) {
                 const auto y = softmax_rows(in[0], 4);
                 return Numbers{-(std::log(y[1]) + std::log(y[7]) + std::log(y[8])) / 3};
               }});
  r.push_back({"cross_entropy, one ignored",
               {a34},
               [](auto& t) {
                 return cross_entropy(t[0], ids_of(t[0], {1, -1, 0}, dims({3}), DType::i32), -1);
               },
               [](auto& in) {
                 const auto y = softmax_rows(in[0], 4);
                 return Numbers{-(std::log(y[1]) + std::log(y[8])) / 2};
               }});
  r.push_back({"dropout",
               {a34},
               [](auto& t) { return mul(get(dropout(t[0], 0.5)), 0); },
               [](auto& in) { return Numbers(in[0].size(), 0.0); }});
  return r;
}

}  // namespace rille::tensor::declared
