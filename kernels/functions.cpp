// Mathematical functions: f32 is computed in f32, f64 in f64.
// round: a value halfway between two integers goes to the even one.
#include "kernels/vecmath_wide.hpp"
#include "kernels/walk.hpp"

namespace rille::kernels::RILLE_ISA {

#define BINARY_FLOAT(name, fast, expression) \
  struct F_##name {                          \
    static constexpr bool broadcasts = fast; \
    template <class T>                       \
    RILLE_INLINE T go(T a, T b, T) {         \
      return T(expression);                  \
    }                                        \
  };                                         \
  void name(const Call& c) { binary(c, RILLE_PICK_FLOAT(row2, F_##name, c.in[0].dtype)); }
#define UNARY_FLOAT(name, expression) \
  struct F_##name {                   \
    template <class T>                \
    RILLE_INLINE T go(T x, T, T) {    \
      return T(expression);           \
    }                                 \
  };                                  \
  void name(const Call& c) { unary(c, RILLE_PICK_FLOAT(row1, F_##name, c.in[0].dtype)); }

BINARY_FLOAT(div, true, a / b)
BINARY_FLOAT(atan2, true, wide_atan2(a, b))
UNARY_FLOAT(exp, vexp(x))
UNARY_FLOAT(expm1, vexpm1(x))
UNARY_FLOAT(log, vlog(x))
UNARY_FLOAT(log1p, vlog1p(x))
UNARY_FLOAT(sqrt, vsqrt(x))
UNARY_FLOAT(rsqrt, T(1) / vsqrt(x))
UNARY_FLOAT(asin, wide_asin(x))
UNARY_FLOAT(acos, wide_acos(x))
UNARY_FLOAT(atan, wide_atan(x))
UNARY_FLOAT(sinh, vsinh(x))
UNARY_FLOAT(cosh, vcosh(x))
UNARY_FLOAT(erf, verf(x))
UNARY_FLOAT(floor, vfloor(x))
UNARY_FLOAT(ceil, -vfloor(-x))
UNARY_FLOAT(round, vround(x))
UNARY_FLOAT(trunc, x < T(0) ? -vfloor(-x) : vfloor(x))

struct F_pow {
  static constexpr bool broadcasts = false;
  template <class T>
  RILLE_INLINE T go(T a, T b, T) {
    return wide_pow(a, b);
  }
};
struct F_square {
  static constexpr bool broadcasts = true;
  template <class T>
  RILLE_INLINE T go(T a, T, T) {
    return a * a;
  }
};
struct F_cube {
  static constexpr bool broadcasts = true;
  template <class T>
  RILLE_INLINE T go(T a, T, T) {
    return wide_cube(a);
  }
};
struct F_exp2 {  // exp2: 2^b
  static constexpr bool broadcasts = true;
  RILLE_INLINE float go(float, float b, float) {
    return float(wide_exp2(b < -300.0f ? -300.0f : b > 300.0f ? 300.0f : b));  // both limits are outside f32's range
  }
  RILLE_INLINE double go(double, double b, double) { return ::exp2(b); }
};
// Expands a base or power that is a single number to an array: with a loop-invariant operand the compiler makes a
// scalar loop for each case instead of vectorizing.
template <class T>
static void pow_row(char* const* p, const int64_t* s, int64_t n, const double* numbers) {
  const T power = s[1] == 0 ? *reinterpret_cast<const T*>(p[1]) : T(0);
  if (power == T(2)) return row2<F_square, T, T>(p, s, n, numbers);
  if (power == T(3)) return row2<F_cube, T, T>(p, s, n, numbers);
  if (s[0] == 0 && *reinterpret_cast<const T*>(p[0]) == T(2)) return row2<F_exp2, T, T>(p, s, n, numbers);
  if (s[2] != 1 || s[0] + s[1] != 1) return row2<F_pow, T, T>(p, s, n, numbers);
  static constexpr int64_t piece = 512;
  const int one = s[0] == 0 ? 0 : 1;
  T number[piece];
  for (int64_t i = 0; i < piece; ++i) number[i] = *reinterpret_cast<const T*>(p[one]);
  for (int64_t first = 0; first < n; first += piece) {
    char* q[3] = {p[0] + first * int64_t(sizeof(T)), p[1] + first * int64_t(sizeof(T)),
                  p[2] + first * int64_t(sizeof(T))};
    q[one] = reinterpret_cast<char*>(number);
    static constexpr int64_t dense[3] = {1, 1, 1};
    row2<F_pow, T, T>(q, dense, n - first < piece ? n - first : piece, numbers);
  }
}
void pow(const Call& c) { binary(c, row_type(c.in[0].dtype) == DType::f32 ? &pow_row<float> : &pow_row<double>); }

struct Sine {
  template <class T>
  RILLE_INLINE T go(T x, T, T) {
    return vsin(x);
  }
  static float exact(float x) { return float(::sin(double(x))); }
};
struct Cosine {
  template <class T>
  RILLE_INLINE T go(T x, T, T) {
    return vcos(x);
  }
  static float exact(float x) { return float(::cos(double(x))); }
};
struct Tangent {
  template <class T>
  RILLE_INLINE T go(T x, T, T) {
    return vsin(x) / vcos(x);
  }
  static float exact(float x) { return float(::tan(double(x))); }
};
// A row that contains a number beyond sine_limit uses libm.
template <class F>
static void sine_row(char* const* p, const int64_t* s, int64_t n, const double* numbers) {
  const float* x = reinterpret_cast<const float*>(p[0]);
  bool large = false;
  for (int64_t i = 0; i < n; ++i) large |= !(vabs(x[i * s[0]]) <= sine_limit);
  if (!large) return row1<F, float, float>(p, s, n, numbers);
  for (int64_t i = 0; i < n; ++i) reinterpret_cast<float*>(p[1])[i * s[1]] = F::exact(x[i * s[0]]);
}
void sin(const Call& c) {
  unary(c, row_type(c.in[0].dtype) == DType::f32 ? &sine_row<Sine> : &row1<Sine, double, double>);
}
void cos(const Call& c) {
  unary(c, row_type(c.in[0].dtype) == DType::f32 ? &sine_row<Cosine> : &row1<Cosine, double, double>);
}
struct F_tan {
  template <class T>
  RILLE_INLINE T go(T x, T, T) {
    return T(::tan(x));
  }
};
void tan(const Call& c) {
  unary(c, row_type(c.in[0].dtype) == DType::f32 ? &sine_row<Tangent> : &row1<F_tan, double, double>);
}

}  // namespace rille::kernels::RILLE_ISA
