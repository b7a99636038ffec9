// Reductions and normalisations over more elements than a block or a tile has, in every floating type, as they lie and
// as columns, beside the same in f64.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "fixture.hpp"

namespace rille::tensor {
namespace {

struct Type {
  DType dtype;
  double tolerance;                    // of a result that is rounded once
};
constexpr Type types[] = {{DType::f64, 1e-13}, {DType::f32, 1e-6}, {DType::bf16, 5e-3}, {DType::f16, 6e-4}};

// The elements of each result, in the order of the results.
std::vector<std::vector<double>> gathered(const Tensor& t, const std::vector<int>& reduced) {
  const auto x = numbers(t);
  std::map<std::vector<std::int64_t>, std::vector<double>> groups;
  for (std::int64_t i = 0; i < std::int64_t(x.size()); ++i) {
    std::vector<std::int64_t> at;
    std::int64_t rest = i;
    for (int d = t.rank() - 1; d >= 0; --d) {
      const bool gone = reduced.empty() || std::find(reduced.begin(), reduced.end(), d) != reduced.end();
      at.insert(at.begin(), gone ? 0 : rest % t.size(d));
      rest /= t.size(d);
    }
    groups[at].push_back(x[std::size_t(i)]);
  }
  std::vector<std::vector<double>> out;
  for (auto& [at, group] : groups) out.push_back(std::move(group));
  return out;
}

double sum_of(const std::vector<double>& x) {
  long double s = 0;
  for (const double v : x) s += v;
  return double(s);
}
double var_of(const std::vector<double>& x) {
  const double m = sum_of(x) / double(x.size());
  long double s = 0;
  for (const double v : x) s += (v - m) * (v - m);
  return double(s) / double(x.size() - 1);
}
double norm_of(const std::vector<double>& x) {
  long double s = 0;
  for (const double v : x) s += v * v;
  return std::sqrt(double(s));
}

using Reduce = std::function<Result<Tensor>(const Tensor&, const std::vector<int>&)>;
struct Case {
  const char* name;
  Reduce run;
  double (*truth)(const std::vector<double>&);
};
const Case cases[] = {
    {"sum", [](auto& t, auto& d) { return sum(t, d); }, sum_of},
    {"mean", [](auto& t, auto& d) { return mean(t, d); },
     [](const std::vector<double>& x) { return sum_of(x) / double(x.size()); }},
    {"var", [](auto& t, auto& d) { return var(t, d, 1, false); }, var_of},
    {"std", [](auto& t, auto& d) { return std_dev(t, d, 1, false); },
     [](const std::vector<double>& x) { return std::sqrt(var_of(x)); }},
    {"norm", [](auto& t, auto& d) { return norm(t, 2, d, false); }, norm_of},
    {"max", [](auto& t, auto& d) { return max(t, d); },
     [](const std::vector<double>& x) { return *std::max_element(x.begin(), x.end()); }},
    {"min", [](auto& t, auto& d) { return min(t, d); },
     [](const std::vector<double>& x) { return *std::min_element(x.begin(), x.end()); }},
};

Tensor drawn(const std::shared_ptr<Graph>& graph, const Dims& shape, DType dtype, double middle) {
  return get(cast(get(add(get(randn(*graph, shape)), middle)), dtype));
}

double worst(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    most = std::max(most, std::isfinite(got[i]) ? std::fabs(got[i] - want[i]) / (1 + std::fabs(want[i])) : HUGE_VAL);
  return most;
}

}  // namespace

TEST_CASE("reductions of many elements are those in f64, rounded, and the same each time", "[unit][tensor]") {
  auto graph = new_graph();
  for (const auto& [dtype, tolerance] : types) {
    // f16 has no room for larger sums; nearer to zero f32 would lose digits of its own.
    const Tensor x = drawn(graph, dims({6, 37, 700}), dtype, dtype == DType::f16 ? 0.25 : 3);
    const std::pair<const char*, Tensor> seen[] = {{"as it lies", x},
                                                   {"turned", get(permute(x, dims({2, 0, 1})))},
                                                   {"a window", get(narrow(x, 2, 3, 530))}};
    for (const auto& [how, t] : seen) {
      for (const std::vector<int>& along : std::vector<std::vector<int>>{{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}}) {
        const auto groups = gathered(t, along);
        for (const auto& c : cases) {
          std::vector<double> want;
          for (const auto& group : groups) want.push_back(c.truth(group));
          const Tensor got = get(c.run(t, along));
          INFO(c.name << " in " << name_of(dtype) << ", " << how << ", along " << along.size() << " from "
                      << (along.empty() ? -1 : along[0]));
          CHECK(got.dtype() == dtype);
          CHECK(worst(numbers(got), want) < tolerance);
          CHECK(bits(get(c.run(t, along))) == bits(got));
        }
      }
    }
  }
}

TEST_CASE("the variance of numbers far from zero keeps its digits", "[unit][tensor]") {
  auto graph = new_graph();
  const Tensor x = drawn(graph, dims({50'000, 9}), DType::f32, 1000);
  for (const std::vector<int>& along : std::vector<std::vector<int>>{{}, {0}}) {
    std::vector<double> want;
    for (const auto& group : gathered(x, along)) want.push_back(var_of(group));
    CHECK(worst(numbers(get(var(x, along, 1, false))), want) < 1e-6);
  }
}

TEST_CASE("a NaN among many is the extreme, wherever it lies", "[unit][tensor]") {
  auto graph = new_graph();
  for (const auto& [dtype, tolerance] : types) {
    for (const std::size_t at : {std::size_t(0), std::size_t(20'011), std::size_t(39'999)}) {
      std::vector<double> x(40'000, 1);
      x[at] = std::nan("");
      const Tensor t = get(from_numbers(*graph, dims({40, 1000}), dtype, x));
      for (const auto& f : {&max, &min}) {
        CHECK(std::isnan(numbers(get(f(t, {}, false)))[0]));
        CHECK(std::isnan(numbers(get(f(t, {0}, false)))[at % 1000]));
        CHECK(std::isnan(numbers(get(f(t, {1}, false)))[at / 1000]));
        CHECK(numbers(get(f(t, {1}, false)))[(at / 1000 + 1) % 40] == 1);
      }
    }
  }
}

TEST_CASE("slopes of variances and norms of many elements", "[unit][tensor]") {
  auto graph = new_graph();
  for (const auto& [dtype, tolerance] : types) {
    Tensor x = drawn(graph, dims({30, 1000}), dtype, 1);
    get(x.set_requires_grad(true));
    const auto v = numbers(x);
    double mean = 0, norm_all = norm_of(v);
    for (const double e : v) mean += e / double(v.size());
    get(backward(get(add(get(mul(get(var(x, {}, 1, false)), 1e3)), get(norm(x, 2, {}, false))))));
    std::vector<double> want;
    for (const double e : v) want.push_back(2e3 * (e - mean) / double(v.size() - 1) + e / norm_all);
    CHECK(worst(numbers(x.grad()), want) < 2 * tolerance);
  }
}

TEST_CASE("groups of large planes are normalised, with their slopes", "[unit][tensor]") {
  auto graph = new_graph();
  const std::int64_t n = 3, c = 6, s = 5000, groups = 2, each = c / groups;
  for (const auto& [dtype, tolerance] : types) {
    for (const bool stats : {false, true}) {         // weight and bias as x, or as its statistics
      Tensor x = drawn(graph, dims({n, c, s}), dtype, 2), g = drawn(graph, dims({n, c, s}), dtype, 0);
      const DType small = stats ? stats_type(dtype) : dtype;
      Tensor w = drawn(graph, dims({c}), small, 1), b = drawn(graph, dims({c}), small, 0);
      for (Tensor* t : {&x, &w, &b}) get(t->set_requires_grad(true));
      const Tensor y = get(group_norm(x, groups, w, b));
      get(backward(get(sum(get(mul(y, g))))));
      const auto xs = numbers(x), gs = numbers(g), ws = numbers(w), bs = numbers(b);
      std::vector<double> want(xs.size()), dx(xs.size()), dw(std::size_t(c), 0), db(std::size_t(c), 0);
      for (std::int64_t r = 0; r < n * groups; ++r) {
        const std::size_t first = std::size_t(r * each * s), count = std::size_t(each * s);
        const std::vector<double> part(xs.begin() + long(first), xs.begin() + long(first + count));
        const double mean = sum_of(part) / double(count);
        const double rstd = 1 / std::sqrt(var_of(part) * double(count - 1) / double(count) + 1e-5);
        double a = 0, p = 0;
        const auto channel = [&](std::size_t i) { return std::size_t(r % groups * each) + i / std::size_t(s); };
        for (std::size_t i = 0; i < count; ++i) {
          const double hat = (part[i] - mean) * rstd, gw = gs[first + i] * ws[channel(i)];
          want[first + i] = hat * ws[channel(i)] + bs[channel(i)];
          a += gw / double(count);
          p += gw * hat / double(count);
          dw[channel(i)] += gs[first + i] * hat;
          db[channel(i)] += gs[first + i];
        }
        for (std::size_t i = 0; i < count; ++i)
          dx[first + i] = rstd * (gs[first + i] * ws[channel(i)] - a - (part[i] - mean) * rstd * p);
      }
      INFO(name_of(dtype) << (stats ? ", statistics" : ""));
      CHECK(worst(numbers(y), want) < 4 * tolerance);
      CHECK(worst(numbers(x.grad()), dx) < 4 * tolerance);
      CHECK(worst(numbers(w.grad()), dw) < 20 * tolerance);
      CHECK(worst(numbers(b.grad()), db) < 20 * tolerance);
    }
  }
}

}  // namespace rille::tensor
