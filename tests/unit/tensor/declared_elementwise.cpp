// Declarations: arithmetic, comparisons and functions, element by element.
#include "operation.hpp"

namespace rille::tensor::declared {

namespace {

using One = Result<Tensor> (*)(const Tensor&);
using Two = Result<Tensor> (*)(const Tensor&, const Tensor&);

Operation one(const char* name, One f, double (*truth)(double), double low = -2, double high = 2) {
  return {name, {{dims({3, 5}), low, high}}, [f](auto& t) { return f(t[0]); }, each(truth)};
}
// A step: no gradient worth a difference quotient.
Operation step(const char* name, One f, double (*truth)(double)) {
  auto o = one(name, f, truth);
  o.gradient = false;
  return o;
}
Operation two(const char* name, Two f, double (*truth)(double, double), Argument a, Argument b) {
  return {name, {a, b}, [f](auto& t) { return f(t[0], t[1]); }, pairs(truth)};
}
// Compares in every type; the result is read as numbers.
Operation compare(const char* name, Two f, double (*truth)(double, double)) {
  return {name,
          {{dims({3, 4}), 0, 3}, {dims({4}), 0, 3}},
          [f](auto& t) { return f(get(floor(t[0])), get(floor(t[1]))); },
          [truth](auto& in) {
            Numbers out;
            for (std::size_t i = 0; i < in[0].size(); ++i)
              out.push_back(truth(std::floor(in[0][i]), std::floor(in[1][i % in[1].size()])));
            return out;
          },
          false,
          numbers_of_all_types()};
}
Operation number(const char* name, std::function<Result<Tensor>(const Tensor&)> f, double (*truth)(double),
                 double low = -2, double high = 2) {
  return {name, {{dims({3, 4}), low, high}}, [f](auto& t) { return f(t[0]); }, each(truth)};
}
// The bits of whole numbers.
Operation bits(const char* name, Two f, double (*truth)(double, double)) {
  return {name,
          {{dims({3, 4}), 0, 100}, {dims({4}), 0, 100}},
          [f](auto& t) { return f(t[0], t[1]); },
          pairs(truth),
          false,
          integers};
}
long whole(double x) { return std::lround(x); }

void arithmetic(std::vector<Operation>& r) {
  const Argument a{dims({3, 4})}, row{dims({4})}, p{dims({3, 4}), 0.3, 2}, column{dims({3, 1}), 0.3, 2};
  r.push_back(two(
      "add", add, [](double x, double y) { return x + y; }, a, row));
  r.push_back(two(
      "sub", sub, [](double x, double y) { return x - y; }, a, row));
  r.push_back(two("mul", mul, [](double x, double y) { return x * y; }, a, {dims({1, 4})}));
  r.push_back(two(
      "div", div, [](double x, double y) { return x / y; }, a, p));
  r.push_back(two(
      "pow", pow, [](double x, double y) { return std::pow(x, y); }, p, a));
  r.push_back(two(
      "maximum", maximum, [](double x, double y) { return std::max(x, y); }, a, a));
  r.push_back(two(
      "minimum", minimum, [](double x, double y) { return std::min(x, y); }, a, a));
  r.push_back(two(
      "atan2", atan2, [](double x, double y) { return std::atan2(x, y); }, a, a));
  r.push_back(two(
      "remainder", remainder, [](double x, double y) { return x - std::floor(x / y) * y; }, a, p));
  r.push_back(two(
      "floor_divide", floor_divide, [](double x, double y) { return std::floor(x / y); }, a, p));
  r.back().gradient = false;
  r.push_back({"add with a column",
               {a, column},
               [](auto& t) { return add(t[1], t[0]); },
               [](auto& in) {
                 Numbers out;
                 for (std::size_t i = 0; i < 12; ++i) out.push_back(in[0][i] + in[1][i / 4]);
                 return out;
               }});
  const Argument w{dims({3, 4}), 1, 11}, v{dims({4}), 1, 11};
  const auto whole_numbers = [&](const char* name, Two f, double (*truth)(double, double)) {
    r.push_back(two(name, f, truth, w, v));
    r.back().gradient = false;
    r.back().types = integers;
  };
  whole_numbers("add of whole numbers", add, [](double x, double y) { return x + y; });
  whole_numbers("mul of whole numbers", mul, [](double x, double y) { return x * y; });
  whole_numbers("maximum of whole numbers", maximum, [](double x, double y) { return std::max(x, y); });
  whole_numbers("floor_divide of whole numbers", floor_divide, [](double x, double y) { return std::floor(x / y); });
  whole_numbers("remainder of whole numbers", remainder, [](double x, double y) { return std::fmod(x, y); });
  r.push_back({"signs of whole numbers",
               {{dims({3, 4}), -9, 9}},
               [](auto& t) {
                 return add(get(remainder(t[0], -4)), get(mul(get(floor_divide(t[0], 4)), get(sign(get(neg(t[0])))))));
               },
               each([](double x) {
                 const double q = std::floor(x / 4), m = x - std::floor(x / -4) * -4;
                 return m + q * (x > 0 ? -1 : x < 0 ? 1 : 0);
               }),
               false,
               {DType::i64, DType::i32, DType::i8}});
}

void with_numbers(std::vector<Operation>& r) {
  r.push_back(number(
      "add number", [](auto& t) { return add(t, 1.5); }, [](double x) { return x + 1.5; }));
  r.push_back(number(
      "sub number", [](auto& t) { return sub(t, 1.5); }, [](double x) { return x - 1.5; }));
  r.push_back(number(
      "rsub", [](auto& t) { return rsub(t, 1.5); }, [](double x) { return 1.5 - x; }));
  r.push_back(number(
      "mul number", [](auto& t) { return mul(t, -3); }, [](double x) { return -3 * x; }));
  r.push_back(number(
      "div number", [](auto& t) { return div(t, 4); }, [](double x) { return x / 4; }));
  r.push_back(number(
      "rdiv", [](auto& t) { return rdiv(t, 2); }, [](double x) { return 2 / x; }, 0.3));
  r.push_back(number(
      "reciprocal", [](auto& t) { return reciprocal(t); }, [](double x) { return 1 / x; }, 0.3));
  r.push_back(number(
      "pow number", [](auto& t) { return pow(t, 3); }, [](double x) { return x * x * x; }, 0.3));
  r.push_back(number(
      "rpow", [](auto& t) { return rpow(t, 2); }, [](double x) { return std::exp2(x); }));
  r.push_back(number(
      "maximum number", [](auto& t) { return maximum(t, 0.2); }, [](double x) { return std::max(x, 0.2); }));
  r.push_back(number(
      "minimum number", [](auto& t) { return minimum(t, 0.2); }, [](double x) { return std::min(x, 0.2); }));
  r.push_back(number(
      "atan2 number", [](auto& t) { return atan2(t, 1.5); }, [](double x) { return std::atan2(x, 1.5); }));
  r.push_back(number(
      "remainder number", [](auto& t) { return remainder(t, -0.7); },
      [](double x) { return x - std::floor(x / -0.7) * -0.7; }));
  r.push_back(number(
      "rremainder", [](auto& t) { return rremainder(t, 3); }, [](double x) { return 3 - std::floor(3 / x) * x; }, 0.6,
      0.9));
  r.push_back(number(
      "clamp", [](auto& t) { return clamp(t, -0.5, 1); }, [](double x) { return std::min(1.0, std::max(-0.5, x)); }));
  r.push_back(number(
      "clamp from below", [](auto& t) { return clamp(t, 0.25, {}); }, [](double x) { return std::max(0.25, x); }));
  r.push_back(number(
      "clamp of whole numbers", [](auto& t) { return clamp(t, 2, 5); },
      [](double x) { return std::min(5.0, std::max(2.0, x)); }, 0, 9));
  r.back().types = integers;
  r.back().gradient = false;
}

void functions(std::vector<Operation>& r) {
  r.push_back(one("neg", neg, [](double x) { return -x; }));
  r.push_back(one("abs", abs, [](double x) { return std::fabs(x); }));
  r.push_back(one("exp", exp, [](double x) { return std::exp(x); }));
  r.push_back(one("expm1", expm1, [](double x) { return std::expm1(x); }));
  r.push_back(one(
      "log", log, [](double x) { return std::log(x); }, 0.3));
  r.push_back(one("exp2", exp2, [](double x) { return std::exp2(x); }));
  r.push_back(one(
      "log2", log2, [](double x) { return std::log2(x); }, 0.3));
  r.push_back(one(
      "log10", log10, [](double x) { return std::log10(x); }, 0.3));
  r.push_back(one(
      "log1p", log1p, [](double x) { return std::log1p(x); }, -0.7));
  r.push_back(one(
      "sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0.3));
  r.push_back(one(
      "rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.3));
  r.push_back(one("square", square, [](double x) { return x * x; }));
  r.push_back(one(
      "sin", sin, [](double x) { return std::sin(x); }, -6, 6));
  r.push_back(one(
      "cos", cos, [](double x) { return std::cos(x); }, -6, 6));
  r.push_back(one(
      "tan", tan, [](double x) { return std::tan(x); }, -1, 1));
  r.push_back(one(
      "asin", asin, [](double x) { return std::asin(x); }, -0.8, 0.8));
  r.push_back(one(
      "acos", acos, [](double x) { return std::acos(x); }, -0.8, 0.8));
  r.push_back(one("atan", atan, [](double x) { return std::atan(x); }));
  r.push_back(one("sinh", sinh, [](double x) { return std::sinh(x); }));
  r.push_back(one("cosh", cosh, [](double x) { return std::cosh(x); }));
  r.push_back(one("erf", erf, [](double x) { return std::erf(x); }));
  r.push_back(step("sign", sign, [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; }));
  r.push_back(step("floor", floor, [](double x) { return std::floor(x); }));
  r.push_back(step("ceil", ceil, [](double x) { return std::ceil(x); }));
  r.push_back(step("round", round, [](double x) { return std::nearbyint(x); }));
  r.push_back(step("trunc", trunc, [](double x) { return std::trunc(x); }));
}

}  // namespace

std::vector<Operation> elementwise() {
  std::vector<Operation> r;
  arithmetic(r);
  with_numbers(r);
  functions(r);
  r.push_back(compare("lt", lt, [](double x, double y) { return double(x < y); }));
  r.push_back(compare("le", le, [](double x, double y) { return double(x <= y); }));
  r.push_back(compare("gt", gt, [](double x, double y) { return double(x > y); }));
  r.push_back(compare("ge", ge, [](double x, double y) { return double(x >= y); }));
  r.push_back(compare("eq", eq, [](double x, double y) { return double(x == y); }));
  r.push_back(compare("ne", ne, [](double x, double y) { return double(x != y); }));
  r.push_back(compare("logical_and", logical_and, [](double x, double y) { return double(x && y); }));
  r.push_back(compare("logical_or", logical_or, [](double x, double y) { return double(x || y); }));
  r.push_back(compare("logical_xor", logical_xor, [](double x, double y) { return double((x != 0) != (y != 0)); }));
  r.push_back(bits("bitwise_and", bitwise_and, [](double x, double y) { return double(whole(x) & whole(y)); }));
  r.push_back(bits("bitwise_or", bitwise_or, [](double x, double y) { return double(whole(x) | whole(y)); }));
  r.push_back(bits("bitwise_xor", bitwise_xor, [](double x, double y) { return double(whole(x) ^ whole(y)); }));
  r.push_back(number(
      "bitwise_not", [](auto& t) { return bitwise_not(get(bitwise_not(t))); }, [](double x) { return x; }));
  r.back().types = integers;
  r.back().gradient = false;
  r.push_back(number(
      "logical_not", [](auto& t) { return logical_not(get(floor(t))); },
      [](double x) { return double(std::floor(x) == 0); }));
  r.back().gradient = false;
  r.push_back({"where",
               {{dims({3, 4})}, {dims({3, 4})}},
               [](auto& t) { return where(get(lt(t[0], t[1])), t[0], get(mul(t[1], 2))); },
               pairs([](double x, double y) { return x < y ? x : 2 * y; })});
  r.push_back({"masked_fill",
               {{dims({3, 4})}, {dims({4}), -2, 2, false}},
               [](auto& t) { return masked_fill(t[0], get(gt(t[1], 0)), 0.5); },
               pairs([](double x, double y) { return y > 0 ? 0.5 : x; })});
  return r;
}

std::vector<Operation> activations() {
  std::vector<Operation> r;
  const auto sigmoid_of = [](double x) { return 1 / (1 + std::exp(-x)); };
  r.push_back(one("tanh", tanh, [](double x) { return std::tanh(x); }));
  r.push_back(one("sigmoid", sigmoid, sigmoid_of));
  r.push_back(one("relu", relu, [](double x) { return std::max(x, 0.0); }));
  r.push_back(number(
      "gelu", [](auto& t) { return gelu(t); },
      [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }));
  r.push_back(number(
      "gelu, exact", [](auto& t) { return gelu(t, true); },
      [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }));
  r.push_back(one("silu", silu, [](double x) { return x / (1 + std::exp(-x)); }));
  r.push_back(number(
      "leaky_relu", [](auto& t) { return leaky_relu(t, 0.2); }, [](double x) { return x > 0 ? x : 0.2 * x; }));
  r.push_back(number(
      "elu", [](auto& t) { return elu(t, 1.5); }, [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }));
  r.push_back(number(
      "softplus", [](auto& t) { return softplus(t, 2); }, [](double x) { return std::log1p(std::exp(2 * x)) / 2; }));
  r.push_back(number(
      "hardswish", [](auto& t) { return hardswish(t); },
      [](double x) { return x * std::min(6.0, std::max(0.0, x + 3)) / 6; }, -5, 5));
  r.push_back(number(
      "hardsigmoid", [](auto& t) { return hardsigmoid(t); },
      [](double x) { return std::min(6.0, std::max(0.0, x + 3)) / 6; }, -5, 5));
  return r;
}

}  // namespace rille::tensor::declared
