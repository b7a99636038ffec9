// Declarations: matrix products
#include <algorithm>

#include "operation.hpp"

namespace rille::tensor::declared {
namespace {

// a [m, k], b [k, n]
Numbers product(const Numbers& a, const Numbers& b, int m, int k, int n) {
  Numbers out(std::size_t(m * n), 0);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int p = 0; p < k; ++p) out[i * n + j] += a[i * k + p] * b[p * n + j];
  return out;
}

}  // namespace

std::vector<Operation> products() {
  const auto a34 = Argument{dims({3, 4})};
  std::vector<Operation> r;
  r.push_back({"matmul",
               {a34, {dims({4, 2})}},
               [](auto& t) { return matmul(t[0], t[1]); },
               [](auto& in) { return product(in[0], in[1], 3, 4, 2); }});
  r.push_back({"matmul transposed",
               {{dims({4, 3})}, {dims({2, 4})}},
               [](auto& t) { return matmul(get(transpose(t[0], 0, 1)), get(transpose(t[1], 0, 1))); },
               [](auto& in) {
                 Numbers a(12), b(8);
                 for (int i = 0; i < 4; ++i)
                   for (int j = 0; j < 3; ++j) a[j * 4 + i] = in[0][i * 3 + j];
                 for (int i = 0; i < 2; ++i)
                   for (int j = 0; j < 4; ++j) b[j * 2 + i] = in[1][i * 4 + j];
                 return product(a, b, 3, 4, 2);
               }});
  r.push_back({"matmul batched",
               {{dims({2, 3, 4})}, {dims({2, 4, 5})}},
               [](auto& t) { return matmul(t[0], t[1]); },
               [](auto& in) {
                 Numbers out;
                 for (int b = 0; b < 2; ++b) {
                   const auto p = product(Numbers(in[0].begin() + b * 12, in[0].begin() + b * 12 + 12),
                                          Numbers(in[1].begin() + b * 20, in[1].begin() + b * 20 + 20), 3, 4, 5);
                   out.insert(out.end(), p.begin(), p.end());
                 }
                 return out;
               }});
  r.push_back({"matmul broadcast",
               {{dims({2, 3, 4})}, {dims({4, 2})}},
               [](auto& t) { return matmul(t[0], t[1]); },
               [](auto& in) { return product(in[0], in[1], 6, 4, 2); }});
  r.push_back({"matmul vector",
               {a34, {dims({4})}},
               [](auto& t) { return matmul(t[0], t[1]); },
               [](auto& in) { return product(in[0], in[1], 3, 4, 1); }});
  r.push_back({"linear",
               {{dims({2, 3, 4})}, {dims({5, 4})}, {dims({5})}},
               [](auto& t) { return linear(t[0], t[1], t[2]); },
               [](auto& in) {
                 Numbers out;
                 for (int i = 0; i < 6; ++i)
                   for (int j = 0; j < 5; ++j) {
                     double s = in[2][j];
                     for (int p = 0; p < 4; ++p) s += in[0][i * 4 + p] * in[1][j * 4 + p];
                     out.push_back(s);
                   }
                 return out;
               }});
  r.push_back({"einsum of matrices",
               {a34, {dims({4, 2})}},
               [](auto& t) {
                 return einsum("ij,jk->ki", {t[0], t[1]});
               },
               [](auto& in) {
                 const auto p = product(in[0], in[1], 3, 4, 2);
                 return Numbers{p[0], p[2], p[4], p[1], p[3], p[5]};
               }});
  r.push_back({"einsum of a batch, some summed",
               {{dims({2, 3, 4})}, {dims({4, 2})}, {dims({3})}},
               [](auto& t) {
                 return einsum("bik,kb,i->b", {t[0], t[1], t[2]});
               },
               [](auto& in) {
                 Numbers out(2, 0);
                 for (int b = 0; b < 2; ++b)
                   for (int i = 0; i < 3; ++i)
                     for (int k = 0; k < 4; ++k) out[b] += in[0][(b * 3 + i) * 4 + k] * in[1][k * 2 + b] * in[2][i];
                 return out;
               }});
  r.push_back({"einsum of an outer product",
               {{dims({2})}, {dims({3})}},
               [](auto& t) {
                 return einsum("i, j", {t[0], t[1]});
               },
               [](auto& in) {
                 Numbers out;
                 for (int i = 0; i < 2; ++i)
                   for (int j = 0; j < 3; ++j) out.push_back(in[0][i] * in[1][j]);
                 return out;
               }});
  r.push_back({"einsum of one",
               {a34},
               [](auto& t) { return einsum("ij->j", {t[0]}); },
               [](auto& in) {
                 Numbers out(4, 0);
                 for (int i = 0; i < 12; ++i) out[i % 4] += in[0][i];
                 return out;
               }});
  return r;
}

}  // namespace rille::tensor::declared
