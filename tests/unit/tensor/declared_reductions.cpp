// Declarations: reductions, and what runs along one dimension
#include <algorithm>

#include "operation.hpp"

namespace rille::tensor::declared {

std::vector<Operation> reductions() {
  const auto a34 = Argument{dims({3, 4})};
  std::vector<Operation> r;
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
  r.push_back({"mean, kept",
               {a34},
               [](auto& t) { return mean(t[0], {-1}, true); },
               [](auto& in) {
                 Numbers out;
                 for (int i = 0; i < 3; ++i)
                   out.push_back((in[0][i * 4] + in[0][i * 4 + 1] + in[0][i * 4 + 2] + in[0][i * 4 + 3]) / 4);
                 return out;
               }});
  r.push_back(
      {"max", {a34}, [](auto& t) { return max(t[0], {0}); }, [=](auto& in) { return columns(in[0], greater, -1e9); }});
  r.push_back(
      {"min", {a34}, [](auto& t) { return min(t[0], {0}); }, [=](auto& in) { return columns(in[0], less, 1e9); }});
  r.push_back({"argmax",
               {a34},
               [](auto& t) { return cast(get(argmax(t[0], 1)), t[0].dtype()); },
               [](auto& in) {
                 Numbers out;
                 for (int i = 0; i < 3; ++i)
                   out.push_back(double(std::max_element(in[0].begin() + i * 4, in[0].begin() + i * 4 + 4) -
                                        in[0].begin() - i * 4));
                 return out;
               },
               false});
  r.push_back(
      {"softmax", {a34}, [](auto& t) { return softmax(t[0], -1); }, [](auto& in) { return softmax_rows(in[0], 4); }});
  r.push_back({"softmax over the first",
               {{dims({4, 1})}},
               [](auto& t) { return softmax(t[0], 0); },
               [](auto& in) { return softmax_rows(in[0], 4); }});
  for (const bool log : {false, true})  // nine side by side
    r.push_back({log ? "log_softmax along columns" : "softmax along columns",
                 {{dims({2, 3, 9})}},
                 [log](auto& t) { return log ? log_softmax(t[0], 1) : softmax(t[0], 1); },
                 [log](auto& in) {
                   Numbers out(in[0].size());
                   for (std::size_t k = 0; k < 18; ++k) {
                     const std::size_t at = k / 9 * 27 + k % 9;
                     const auto y = softmax_rows({in[0][at], in[0][at + 9], in[0][at + 18]}, 3);
                     for (std::size_t i = 0; i < 3; ++i) out[at + 9 * i] = log ? std::log(y[i]) : y[i];
                   }
                   return out;
                 }});
  r.push_back({"log_softmax",
               {a34},
               [](auto& t) { return log_softmax(t[0], 1); },
               [](auto& in) {
                 auto y = softmax_rows(in[0], 4);
                 for (auto& v : y) v = std::log(v);
                 return y;
               }});
  const auto over_rows = [&](const char* name, std::function<Result<Tensor>(const Tensor&)> f, auto reference,
                             bool gradient = true) {
    r.push_back({name, {a34}, [f](auto& t) { return f(t[0]); }, rows(4, reference), gradient});
  };
  const auto mean_of = [](const Numbers& x) {
    double s = 0;
    for (double v : x) s += v;
    return s / double(x.size());
  };
  const auto spread_of = [mean_of](const Numbers& x, double correction) {
    const double m = mean_of(x);
    double s = 0;
    for (double v : x) s += (v - m) * (v - m);
    return s / (double(x.size()) - correction);
  };
  over_rows(
      "prod", [](auto& t) { return prod(t, {1}); }, [](auto x) { return Numbers{x[0] * x[1] * x[2] * x[3]}; });
  over_rows(
      "prod with zeros", [](auto& t) { return prod(get(maximum(t, 0)), {1}, true); },
      [](auto x) {
        double p = 1;
        for (double v : x) p *= std::max(v, 0.0);
        return Numbers{p};
      });
  over_rows(
      "argmin", [](auto& t) { return argmin(t, 1); },
      [](auto x) { return Numbers{double(std::min_element(x.begin(), x.end()) - x.begin())}; }, false);
  over_rows(
      "any", [](auto& t) { return any(get(gt(t, 1)), {1}); },
      [](auto x) { return Numbers{double(*std::max_element(x.begin(), x.end()) > 1)}; }, false);
  over_rows(
      "all", [](auto& t) { return all(get(gt(t, -1)), {1}, true); },
      [](auto x) { return Numbers{double(*std::min_element(x.begin(), x.end()) > -1)}; }, false);
  over_rows(
      "var", [](auto& t) { return var(t, {1}); }, [=](auto x) { return Numbers{spread_of(x, 1)}; });
  over_rows(
      "std, uncorrected", [](auto& t) { return std_dev(t, {-1}, 0, true); },
      [=](auto x) { return Numbers{std::sqrt(spread_of(x, 0))}; });
  r.back().slack = 2;
  over_rows(
      "norm", [](auto& t) { return norm(t, 2, {1}); },
      [](auto x) { return Numbers{std::sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3])}; });
  over_rows(
      "norm of third powers", [](auto& t) { return norm(t, 3, {1}); },
      [](auto x) {
        double s = 0;
        for (double v : x) s += std::pow(std::fabs(v), 3);
        return Numbers{std::cbrt(s)};
      });
  r.back().slack = 2;
  over_rows(
      "norm of sizes", [](auto& t) { return norm(t, 1, {1}); },
      [](auto x) { return Numbers{std::fabs(x[0]) + std::fabs(x[1]) + std::fabs(x[2]) + std::fabs(x[3])}; });
  over_rows(
      "norm, largest", [](auto& t) { return norm(t, HUGE_VAL, {1}); },
      [](auto x) {
        return Numbers{std::max({std::fabs(x[0]), std::fabs(x[1]), std::fabs(x[2]), std::fabs(x[3])})};
      });
  over_rows(
      "logsumexp", [](auto& t) { return logsumexp(get(mul(t, 3)), {1}); },
      [](auto x) {
        double s = 0;
        for (double v : x) s += std::exp(3 * v);
        return Numbers{std::log(s)};
      });
  over_rows(
      "cumsum", [](auto& t) { return cumsum(t, 1); },
      [](auto x) {
        return Numbers{x[0], x[0] + x[1], x[0] + x[1] + x[2], x[0] + x[1] + x[2] + x[3]};
      });
  r.push_back({"cumsum of columns",
               {{dims({2, 3})}},
               [](auto& t) { return cumsum(t[0], 0); },
               [](auto& in) {
                 const auto& x = in[0];
                 return Numbers{x[0], x[1], x[2], x[0] + x[3], x[1] + x[4], x[2] + x[5]};
               }});
  const auto whole = [&](const char* name, std::function<Result<Tensor>(const Tensor&)> f, auto reference) {
    r.push_back({name, {{dims({3, 4}), 0, 9}}, [f](auto& t) { return f(t[0]); }, rows(4, reference), false, integers});
  };
  whole(
      "sum of whole numbers", [](auto& t) { return sum(t, {1}); },
      [](auto x) { return Numbers{x[0] + x[1] + x[2] + x[3]}; });
  whole(
      "prod of whole numbers", [](auto& t) { return prod(t, {1}); },
      [](auto x) { return Numbers{x[0] * x[1] * x[2] * x[3]}; });
  whole(
      "cumsum of whole numbers", [](auto& t) { return cumsum(t, 1); },
      [](auto x) {
        return Numbers{x[0], x[0] + x[1], x[0] + x[1] + x[2], x[0] + x[1] + x[2] + x[3]};
      });
  whole(
      "max of whole numbers", [](auto& t) { return max(t, {1}); },
      [](auto x) { return Numbers{*std::max_element(x.begin(), x.end())}; });
  whole(
      "min of whole numbers", [](auto& t) { return min(t, {1}); },
      [](auto x) { return Numbers{*std::min_element(x.begin(), x.end())}; });
  whole(
      "argmax of whole numbers", [](auto& t) { return argmax(t, 1); },
      [](auto x) { return Numbers{double(std::max_element(x.begin(), x.end()) - x.begin())}; });
  return r;
}

}  // namespace rille::tensor::declared
