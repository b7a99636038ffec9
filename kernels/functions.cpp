// Functions of floating numbers: f32 in f32, f64 in f64.
#include "kernels/elementwise.hpp"

#include "kernels/walk.hpp"

namespace rille::kernels::RILLE_ISA {

#define BINARY_FLOAT(name, fast, expression)                                       \
  struct F_##name {                                                                \
    static constexpr bool broadcasts = fast;                                       \
    template <class T> RILLE_INLINE T go(T a, T b, T) { return T(expression); }    \
  };                                                                               \
  void name(const Call& c) { binary(c, RILLE_PICK_FLOAT(row2, F_##name, c.in[0].dtype)); }
#define UNARY_FLOAT(name, expression)                                              \
  struct F_##name {                                                                \
    template <class T> RILLE_INLINE T go(T x, T, T) { return T(expression); }      \
  };                                                                               \
  void name(const Call& c) { unary(c, RILLE_PICK_FLOAT(row1, F_##name, c.in[0].dtype)); }

BINARY_FLOAT(div, true, a / b)
BINARY_FLOAT(pow, false, b == T(2) ? a * a : vpow(a, b))
BINARY_FLOAT(atan2, false, ::atan2(double(a), double(b)))
UNARY_FLOAT(exp, vexp(x))
UNARY_FLOAT(expm1, vexpm1(x))
UNARY_FLOAT(log, vlog(x))
UNARY_FLOAT(log1p, vlog1p(x))
UNARY_FLOAT(sqrt, vsqrt(x))
UNARY_FLOAT(rsqrt, T(1) / vsqrt(x))
UNARY_FLOAT(asin, ::asin(double(x)))
UNARY_FLOAT(acos, ::acos(double(x)))
UNARY_FLOAT(atan, ::atan(double(x)))
UNARY_FLOAT(sinh, vsinh(x))
UNARY_FLOAT(cosh, vcosh(x))
UNARY_FLOAT(erf, verf(x))
UNARY_FLOAT(floor, vfloor(x))
UNARY_FLOAT(ceil, -vfloor(-x))
UNARY_FLOAT(round, vround(x))
UNARY_FLOAT(trunc, x < T(0) ? -vfloor(-x) : vfloor(x))

struct Sine {
  template <class T> RILLE_INLINE T go(T x, T, T) { return vsin(x); }
  static float exact(float x) { return float(::sin(double(x))); }
};
struct Cosine {
  template <class T> RILLE_INLINE T go(T x, T, T) { return vcos(x); }
  static float exact(float x) { return float(::cos(double(x))); }
};
struct Tangent {
  template <class T> RILLE_INLINE T go(T x, T, T) { return vsin(x) / vcos(x); }
  static float exact(float x) { return float(::tan(double(x))); }
};
// A row with a very large number in it goes to libm.
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
  template <class T> RILLE_INLINE T go(T x, T, T) { return T(::tan(x)); }
};
void tan(const Call& c) {
  unary(c, row_type(c.in[0].dtype) == DType::f32 ? &sine_row<Tangent> : &row1<F_tan, double, double>);
}

}  // namespace rille::kernels::RILLE_ISA
