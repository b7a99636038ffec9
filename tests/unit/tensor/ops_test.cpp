// Every operation once: its value in f32 and f64 against a plain f64 reference, its gradient in f64 against finite
// differences, and its f32 gradient against the f64 one. To add an operation, add a row.
#include <cmath>
#include <functional>
#include <random>

#include "fixture.hpp"

namespace rille::tensor {
namespace {

using Numbers = std::vector<double>;
using Tensors = std::vector<Tensor>;

struct Argument {
  Dims shape;
  double low = -2, high = 2;
};

struct Row {
  std::string name;
  std::vector<Argument> arguments;
  std::function<Result<Tensor>(const Tensors&)> run;
  std::function<Numbers(const std::vector<Numbers>&)> reference;
  bool gradient = true;
};

std::function<Numbers(const std::vector<Numbers>&)> each(double (*f)(double)) {
  return [f](const std::vector<Numbers>& in) {
    Numbers out;
    for (double x : in[0]) out.push_back(f(x));
    return out;
  };
}
std::function<Numbers(const std::vector<Numbers>&)> pairs(double (*f)(double, double)) {
  return [f](const std::vector<Numbers>& in) {
    Numbers out;
    for (std::size_t i = 0; i < in[0].size(); ++i) out.push_back(f(in[0][i], in[1][i % in[1].size()]));
    return out;
  };
}

double gelu_of(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// a [m, k], b [k, n]
Numbers product(const Numbers& a, const Numbers& b, int m, int k, int n) {
  Numbers out(std::size_t(m * n), 0);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int p = 0; p < k; ++p) out[i * n + j] += a[i * k + p] * b[p * n + j];
  return out;
}

Numbers softmax_rows(const Numbers& x, int n) {
  Numbers out(x.size());
  for (std::size_t r = 0; r < x.size(); r += n) {
    double m = -1e300, s = 0;
    for (int i = 0; i < n; ++i) m = std::max(m, x[r + i]);
    for (int i = 0; i < n; ++i) s += out[r + i] = std::exp(x[r + i] - m);
    for (int i = 0; i < n; ++i) out[r + i] /= s;
  }
  return out;
}

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

Tensor ids_of(const Tensor& like, std::vector<double> ids, const Dims& shape, DType dtype = DType::i64) {
  return get(from_numbers(like.graph(), shape, dtype, ids));
}

std::vector<Row> rows() {
  const auto a34 = Argument{dims({3, 4})};
  const auto p34 = Argument{dims({3, 4}), 0.3, 2};
  std::vector<Row> r;
  r.push_back(
      {"add", {a34, {dims({4})}}, [](auto& t) { return add(t[0], t[1]); }, pairs([](double x, double y) {
         return x + y;
       })});
  r.push_back(
      {"sub", {a34, {dims({4})}}, [](auto& t) { return sub(t[0], t[1]); }, pairs([](double x, double y) {
         return x - y;
       })});
  r.push_back(
      {"mul", {a34, {dims({1, 4})}}, [](auto& t) { return mul(t[0], t[1]); }, pairs([](double x, double y) {
         return x * y;
       })});
  r.push_back({"div", {a34, p34}, [](auto& t) { return div(t[0], t[1]); }, pairs([](double x, double y) {
                 return x / y;
               })});
  r.push_back({"pow", {p34, a34}, [](auto& t) { return pow(t[0], t[1]); }, pairs([](double x, double y) {
                 return std::pow(x, y);
               })});
  r.push_back(
      {"maximum", {a34, a34}, [](auto& t) { return maximum(t[0], t[1]); }, pairs([](double x, double y) {
         return std::max(x, y);
       })});
  r.push_back(
      {"minimum", {a34, a34}, [](auto& t) { return minimum(t[0], t[1]); }, pairs([](double x, double y) {
         return std::min(x, y);
       })});
  r.push_back({"add number", {a34}, [](auto& t) { return add(t[0], 1.5); }, each([](double x) { return x + 1.5; })});
  r.push_back({"sub number", {a34}, [](auto& t) { return sub(t[0], 1.5); }, each([](double x) { return x - 1.5; })});
  r.push_back({"rsub", {a34}, [](auto& t) { return rsub(t[0], 1.5); }, each([](double x) { return 1.5 - x; })});
  r.push_back({"mul number", {a34}, [](auto& t) { return mul(t[0], -3); }, each([](double x) { return -3 * x; })});
  r.push_back({"div number", {a34}, [](auto& t) { return div(t[0], 4); }, each([](double x) { return x / 4; })});
  r.push_back({"rdiv", {p34}, [](auto& t) { return rdiv(t[0], 2); }, each([](double x) { return 2 / x; })});
  r.push_back({"pow number", {p34}, [](auto& t) { return pow(t[0], 3); }, each([](double x) { return x * x * x; })});
  r.push_back({"rpow", {a34}, [](auto& t) { return rpow(t[0], 2); }, each([](double x) { return std::exp2(x); })});
  r.push_back({"maximum number", {a34}, [](auto& t) { return maximum(t[0], 0.2); }, each([](double x) {
                 return std::max(x, 0.2);
               })});
  r.push_back({"minimum number", {a34}, [](auto& t) { return minimum(t[0], 0.2); }, each([](double x) {
                 return std::min(x, 0.2);
               })});
  r.push_back({"neg", {a34}, [](auto& t) { return neg(t[0]); }, each([](double x) { return -x; })});
  r.push_back({"abs", {a34}, [](auto& t) { return abs(t[0]); }, each([](double x) { return std::fabs(x); })});
  r.push_back({"exp", {a34}, [](auto& t) { return exp(t[0]); }, each([](double x) { return std::exp(x); })});
  r.push_back({"log", {p34}, [](auto& t) { return log(t[0]); }, each([](double x) { return std::log(x); })});
  r.push_back({"sqrt", {p34}, [](auto& t) { return sqrt(t[0]); }, each([](double x) { return std::sqrt(x); })});
  r.push_back({"rsqrt", {p34}, [](auto& t) { return rsqrt(t[0]); }, each([](double x) { return 1 / std::sqrt(x); })});
  r.push_back({"tanh", {a34}, [](auto& t) { return tanh(t[0]); }, each([](double x) { return std::tanh(x); })});
  r.push_back({"sigmoid", {a34}, [](auto& t) { return sigmoid(t[0]); }, each(sigmoid_of)});
  r.push_back({"relu", {a34}, [](auto& t) { return relu(t[0]); }, each([](double x) { return std::max(x, 0.0); })});
  r.push_back({"gelu", {a34}, [](auto& t) { return gelu(t[0]); }, each(gelu_of)});
  r.push_back({"where", {a34, a34}, [](auto& t) { return where(get(lt(t[0], t[1])), t[0], get(mul(t[1], 2))); },
               pairs([](double x, double y) { return x < y ? x : 2 * y; })});
  r.push_back({"lt",
               {a34, a34},
               [](auto& t) { return cast(get(lt(t[0], t[1])), t[0].dtype()); },
               pairs([](double x, double y) { return double(x < y); }),
               false});
  r.push_back({"ge",
               {a34, a34},
               [](auto& t) { return cast(get(ge(t[0], t[1])), t[0].dtype()); },
               pairs([](double x, double y) { return double(x >= y); }),
               false});
  r.push_back({"matmul",
               {a34, {dims({4, 2})}},
               [](auto& t) { return matmul(t[0], t[1]); },
               [](auto& in) { return product(in[0], in[1], 3, 4, 2); }});
  r.push_back({"matmul transposed", {{dims({4, 3})}, {dims({2, 4})}},
               [](auto& t) { return matmul(get(transpose(t[0], 0, 1)), get(transpose(t[1], 0, 1))); },
               [](auto& in) {
                 Numbers a(12), b(8);
                 for (int i = 0; i < 4; ++i) for (int j = 0; j < 3; ++j) a[j * 4 + i] = in[0][i * 3 + j];
                 for (int i = 0; i < 2; ++i) for (int j = 0; j < 4; ++j) b[j * 2 + i] = in[1][i * 4 + j];
                 return product(a, b, 3, 4, 2);
               }});
  r.push_back({"matmul batched",
               {{dims({2, 3, 4})}, {dims({2, 4, 5})}},
               [](auto& t) { return matmul(t[0], t[1]); },
               [](auto& in) {
                 Numbers out;
                 for (int b = 0; b < 2; ++b) {
                   const auto p =
                       product(Numbers(in[0].begin() + b * 12, in[0].begin() + b * 12 + 12),
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
  r.push_back({"attention",
               {{dims({2, 2, 3, 4})}, {dims({2, 2, 5, 4})}, {dims({2, 2, 5, 4})}},
               [](auto& t) { return scaled_dot_product_attention(t[0], t[1], t[2], false); },
               [](auto& in) { return attention_of(in, 4, 3, 5, 4, false); }});
  r.push_back({"attention causal",
               {{dims({1, 2, 70, 4})}, {dims({1, 2, 70, 4})}, {dims({1, 2, 70, 4})}},
               [](auto& t) { return scaled_dot_product_attention(t[0], t[1], t[2], true); },
               [](auto& in) { return attention_of(in, 2, 70, 70, 4, true); }});
  r.push_back({"attention of one projection", {{dims({2, 3, 12})}},   // [b, t, 3 h d], h = 2, d = 2
               [](auto& t) -> Result<Tensor> {
                 auto parts = get(chunk(t[0], 3, 2));
                 for (auto& p : parts) p = get(transpose(get(reshape(p, dims({2, 3, 2, 2}))), 1, 2));
                 return reshape(
                     get(transpose(get(scaled_dot_product_attention(parts[0], parts[1], parts[2], true)), 1,
                                   2)),
                     dims({2, 3, 4}));
               },
               [](auto& in) {
                 std::vector<Numbers> qkv(3, Numbers(24));
                 for (int b = 0; b < 2; ++b)
                   for (int t = 0; t < 3; ++t)
                     for (int k = 0; k < 3; ++k)
                       for (int h = 0; h < 2; ++h)
                         for (int d = 0; d < 2; ++d)
                           qkv[k][((b * 2 + h) * 3 + t) * 2 + d] =
                               in[0][(b * 3 + t) * 12 + k * 4 + h * 2 + d];
                 const auto o = attention_of(qkv, 4, 3, 3, 2, true);
                 Numbers out(24);
                 for (int b = 0; b < 2; ++b)
                   for (int t = 0; t < 3; ++t)
                     for (int h = 0; h < 2; ++h)
                       for (int d = 0; d < 2; ++d)
                         out[(b * 3 + t) * 4 + h * 2 + d] = o[((b * 2 + h) * 3 + t) * 2 + d];
                 return out;
               }});
  const auto same = [](const std::vector<Numbers>& in) { return in[0]; };
  r.push_back({"reshape", {a34}, [](auto& t) { return reshape(t[0], dims({2, -1})); }, same});
  r.push_back({"reshape of a transpose",
               {{dims({3, 1, 4})}},
               [](auto& t) { return reshape(get(transpose(t[0], 0, 2)), dims({12})); },
               [](auto& in) {
                 Numbers out;
                 for (int j = 0; j < 4; ++j)
                   for (int i = 0; i < 3; ++i) out.push_back(in[0][i * 4 + j]);
                 return out;
               }});
  r.push_back({"permute", {{dims({2, 1, 3})}}, [](auto& t) { return permute(t[0], dims({1, 0, 2})); }, same});
  r.push_back({"narrow", {a34}, [](auto& t) { return narrow(t[0], 1, 1, 2); }, [](auto& in) {
                 return Numbers{in[0][1], in[0][2], in[0][5], in[0][6], in[0][9], in[0][10]};
               }});
  r.push_back({"select",
               {a34},
               [](auto& t) { return select(t[0], 0, -1); },
               [](auto& in) { return Numbers(in[0].begin() + 8, in[0].end()); }});
  r.push_back({"expand", {{dims({2, 1})}}, [](auto& t) { return expand(t[0], dims({3, -1, 2})); }, [](auto& in) {
                 const double a = in[0][0], b = in[0][1];
                 return Numbers{a, a, b, b, a, a, b, b, a, a, b, b};
               }});
  r.push_back({"cat", {a34, {dims({3, 2})}}, [](auto& t) { return cat({t[0], t[1]}, 1); }, [](auto& in) {
                 Numbers out;
                 for (int i = 0; i < 3; ++i) {
                   out.insert(out.end(), in[0].begin() + i * 4, in[0].begin() + i * 4 + 4);
                   out.insert(out.end(), in[1].begin() + i * 2, in[1].begin() + i * 2 + 2);
                 }
                 return out;
               }});
  r.push_back({"chunk",
               {a34},
               [](auto& t) { return add(get(chunk(t[0], 2, 1))[1], 0.5); },
               [](auto& in) {
                 return Numbers{in[0][2] + .5, in[0][3] + .5,  in[0][6] + .5,
                                in[0][7] + .5, in[0][10] + .5, in[0][11] + .5};
               }});
  const auto columns = [](const Numbers& x, auto f, double start) {
    Numbers out(4, start);
    for (int i = 0; i < 12; ++i) out[i % 4] = f(out[i % 4], x[i]);
    return out;
  };
  const auto plus = [](double x, double y) { return x + y; };
  const auto greater = [](double x, double y) { return std::max(x, y); };
  const auto less = [](double x, double y) { return std::min(x, y); };
  r.push_back({"sum",
               {a34},
               [](auto& t) { return sum(t[0]); },
               [](auto& in) {
                 double s = 0;
                 for (double x : in[0]) s += x;
                 return Numbers{s};
               }});
  r.push_back({"sum of rows",
               {a34},
               [](auto& t) { return sum(t[0], {0}); },
               [=](auto& in) { return columns(in[0], plus, 0); }});
  r.push_back({"mean, kept", {a34}, [](auto& t) { return mean(t[0], {-1}, true); }, [](auto& in) {
                 Numbers out;
                 for (int i = 0; i < 3; ++i)
                   out.push_back((in[0][i * 4] + in[0][i * 4 + 1] + in[0][i * 4 + 2] + in[0][i * 4 + 3]) / 4);
                 return out;
               }});
  r.push_back({"max",
               {a34},
               [](auto& t) { return max(t[0], {0}); },
               [=](auto& in) { return columns(in[0], greater, -1e9); }});
  r.push_back({"min",
               {a34},
               [](auto& t) { return min(t[0], {0}); },
               [=](auto& in) { return columns(in[0], less, 1e9); }});
  r.push_back({"argmax", {a34}, [](auto& t) { return cast(get(argmax(t[0], 1)), t[0].dtype()); }, [](auto& in) {
                 Numbers out;
                 for (int i = 0; i < 3; ++i)
                   out.push_back(double(std::max_element(in[0].begin() + i * 4, in[0].begin() + i * 4 + 4) -
                                        in[0].begin() - i * 4));
                 return out;
               }, false});
  r.push_back({"softmax",
               {a34},
               [](auto& t) { return softmax(t[0], -1); },
               [](auto& in) { return softmax_rows(in[0], 4); }});
  r.push_back({"softmax over the first",
               {{dims({4, 1})}},
               [](auto& t) { return softmax(t[0], 0); },
               [](auto& in) { return softmax_rows(in[0], 4); }});
  r.push_back({"log_softmax", {a34}, [](auto& t) { return log_softmax(t[0], 1); }, [](auto& in) {
                 auto y = softmax_rows(in[0], 4);
                 for (auto& v : y) v = std::log(v);
                 return y;
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
               [](auto& t) {
                 t[0].graph().set_random_state({3, 0, 0});
                 return mul(get(dropout(t[0], 0.5)), 0);
               },
               [](auto& in) { return Numbers(in[0].size(), 0.0); }});
  return r;
}

Numbers draw(const Argument& a, std::mt19937& random) {
  std::uniform_real_distribution<double> u(a.low, a.high);
  Numbers out;
  for (std::int64_t i = 0; i < a.shape.count(); ++i) out.push_back(double(float(u(random))));   // exact in f32
  return out;
}

Tensors inputs(Graph& g, const Row& row, const std::vector<Numbers>& values, DType dtype) {
  Tensors out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.push_back(get(from_numbers(g, row.arguments[i].shape, dtype, values[i])));
    if (row.gradient) get(out.back().set_requires_grad(true));
  }
  return out;
}

// sum(out * weights), with weights that differ from element to element
Tensor weighted(const Tensor& out) {
  Numbers w;
  for (std::int64_t i = 0; i < out.count(); ++i) w.push_back(0.5 + 0.25 * double(i % 7));
  return get(sum(get(mul(out, get(from_numbers(out.graph(), out.shape(), out.dtype(), w))))));
}

void check_close(const Numbers& got, const Numbers& want, double tolerance, const std::string& what) {
  INFO(what);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    CHECK(got[i] == Approx(want[i]).epsilon(tolerance).margin(tolerance));
  }
}

}  // namespace

TEST_CASE("each operation: value and gradient", "[unit][tensor]") {
  auto graph = new_graph();
  std::mt19937 random(11);
  for (const auto& row : rows()) {
    INFO(row.name);
    std::vector<Numbers> values;
    for (const auto& a : row.arguments) values.push_back(draw(a, random));
    const auto t32 = inputs(*graph, row, values, DType::f32), t64 = inputs(*graph, row, values, DType::f64);
    const auto o32 = get(row.run(t32)), o64 = get(row.run(t64));
    CHECK(o32.dtype() == DType::f32);
    const auto want = row.reference(values);
    check_close(numbers(o64), want, 1e-12, row.name + " in f64");
    check_close(numbers(o32), want, 3e-6, row.name + " in f32");
    if (!row.gradient) continue;
    get(backward(weighted(o32)));
    get(backward(weighted(o64)));
    NoGrad guard(*graph);
    for (std::size_t a = 0; a < values.size(); ++a) {
      const auto g64 = numbers(t64[a].grad()), g32 = numbers(t32[a].grad());
      check_close(g32, g64, 2e-5, row.name + ": f32 gradient of argument " + std::to_string(a + 1));
      for (std::size_t i = 0; i < values[a].size(); i += 1 + values[a].size() / 24) {
        const double h = 1e-5;
        double sides[2];
        for (int side = 0; side < 2; ++side) {
          auto moved = values;
          moved[a][i] += side ? h : -h;
          Row plain = row;
          plain.gradient = false;
          sides[side] = get(graph->item_blocking(weighted(get(row.run(inputs(*graph, plain, moved, DType::f64))))));
        }
        INFO(row.name << ": gradient of argument " << a + 1 << ", element " << i);
        CHECK(g64[i] == Approx((sides[1] - sides[0]) / (2 * h)).epsilon(1e-6).margin(1e-7));
      }
    }
  }
}

TEST_CASE("long rows, strides and reductions agree with plain loops", "[unit][tensor]") {
  auto graph = new_graph();
  const auto x = get(randn(*graph, dims({37, 1003})));
  const auto v = numbers(x);
  double total = 0;
  Numbers columns(1003, 0);
  for (std::size_t i = 0; i < v.size(); ++i) { total += v[i]; columns[i % 1003] += v[i]; }
  CHECK(get(graph->item_blocking(get(sum(x)))) == Approx(total).margin(1e-3));
  check_close(numbers(get(sum(x, {0}))), columns, 1e-5, "columns");
  check_close(numbers(get(sum(get(transpose(x, 0, 1)), {1}))), columns, 1e-5, "columns of the transpose");
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
  CHECK(numbers(get(cast(get(cast(get(from_numbers(*graph, dims({3}), DType::f32, {1.00390625, -2.5, 1e30})),
                                  DType::bf16)),
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
  CHECK(message(narrow(a, 1, 2, 2)).find("narrow: 2 places from 2") == 0);
  CHECK(message(embedding(a, a)).find("embedding: ids of f32[2, 3]") == 0);
  CHECK(message(cross_entropy(a, get(zeros(*graph, dims({3}), DType::i64))))
            .find("logits [2, 3] with labels [3]") != std::string::npos);
  CHECK(message(softmax(a, 2)).find("dimension 3") != std::string::npos);
  CHECK(message(exp(get(cast(a, DType::bf16)))).find("bf16") != std::string::npos);
  CHECK(message(add(a, Tensor{})).find("empty") != std::string::npos);
  CHECK(message(cat({a, b}, 0)).find("[2, 3] and [4, 5]") != std::string::npos);
  CHECK(message(full(*graph, dims({-1}), 0)).find("-1") != std::string::npos);
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
  const auto picks = numbers(get(multinomial(
      get(expand(get(from_numbers(*graph, dims({1, 3}), DType::f32, {1, 0, 3})), dims({4000, 3}))))));
  CHECK(std::count(picks.begin(), picks.end(), 1.0) == 0);
  CHECK(double(std::count(picks.begin(), picks.end(), 2.0)) == Approx(3000).margin(150));
}

}  // namespace rille::tensor
