// Arithmetic on all number types. Integers wrap around.
// - clamp: between attrs.f[0] and f[1]; clamp_grad: in = {x, gradient}.
// - floor_divide and remainder: like Python's // and %.
// - axpy: out[0] += attrs.f[0] * in[0]; out may be strided.
// - scale: out[0] *= in[0], or *= attrs.f[0] if there is no input; out may be strided.
#include "kernels/walk.hpp"

namespace rille::kernels::RILLE_ISA {

#define BINARY(name, expression)                        \
  struct F_##name {                                     \
    static constexpr bool broadcasts = true;            \
    template <class T>                                  \
    RILLE_INLINE T go(T a, T b, [[maybe_unused]] T f) { \
      return T(expression);                             \
    }                                                   \
  };                                                    \
  void name(const Call& c) { binary(c, RILLE_PICK(row2, F_##name, c.in[0].dtype, T)); }
#define UNARY(name, expression)                                          \
  struct F_##name {                                                      \
    template <class T>                                                   \
    RILLE_INLINE T go(T x, [[maybe_unused]] T f, [[maybe_unused]] T g) { \
      return T(expression);                                              \
    }                                                                    \
  };                                                                     \
  void name(const Call& c) { unary(c, RILLE_PICK(row1, F_##name, c.in[0].dtype, T)); }

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a* b)
BINARY(maximum, a < b || b != b ? b : a)  // if either operand is NaN, so is the result
BINARY(minimum, b < a || b != b ? b : a)
UNARY(neg, -x)
UNARY(abs, x < T(0) ? -x : x)
UNARY(sign, x > T(0) ? T(1) : x < T(0) ? T(-1) : x)
UNARY(clamp, x<f ? f : x> g ? g : x)

// Computes a // b from the exact remainder, like CPython's float_floor_div, since a / b may round up to the next
// integer.
RILLE_INLINE double floored(double a, double b) {
  const double rest = ::fmod(a, b);
  if (b == 0 || rest != rest) return b == 0 ? a / b : rest;
  const double whole = (a - rest) / b - (rest != 0 && (b < 0) != (rest < 0)), low = ::floor(whole);
  return whole == 0 ? ::copysign(0.0, a / b) : whole - low > 0.5 ? low + 1 : low;
}

// a // b, rounded towards minus infinity: a = b * quotient + remainder, and the remainder has b's sign.
template <class T>
RILLE_INLINE T quotient(T a, T b) {
  if constexpr (T(0.5) != T(0)) return T(floored(a, b));
  else if (b == T(0)) return T(0);                          // divisor_fits() has refused this call
  else if (T(-1) < T(0) && b == T(-1)) return T(T(0) - a);  // negating the lowest integer wraps around
  else return T(a / b - (a % b != 0 && (a < T(0)) != (b < T(0))));
}
template <class T>
RILLE_INLINE T rest(T a, T b) {
  if constexpr (T(0.5) != T(0)) {
    const T r = T(::fmod(double(a), double(b)));
    return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
  } else if (b == T(0) || (T(-1) < T(0) && b == T(-1))) {
    return T(0);
  } else {
    const T r = T(a % b);
    return r != T(0) && (r < T(0)) != (b < T(0)) ? T(r + b) : r;
  }
}

struct F_quotient {
  static constexpr bool broadcasts = false;
  template <class T>
  RILLE_INLINE T go(T a, T b, T) {
    return quotient(a, b);
  }
};
struct F_rest {
  static constexpr bool broadcasts = false;
  template <class T>
  RILLE_INLINE T go(T a, T b, T) {
    return rest(a, b);
  }
};

// Refuses integer division by zero, which would raise SIGFPE.
static bool divisor_fits(const Call& c, const char* name) {
  if (is_floating(c.in[0].dtype)) return true;
  bool zero = false;
  if (c.n_in == 1 && c.attrs->i[0] == 0) {
    zero = c.attrs->f[0] == 0;
  } else {
    const View& b = c.in[c.n_in - 1];
    const View* const views[1] = {&b};
    const auto nest = make_nest<1>(views);
    RILLE_NUMBERS(b.dtype, {
      for_rows(c, nest, [&](const int64_t* at, int64_t n) {
        bool mine = false;
        for (int64_t i = 0; i < n; ++i) mine = mine || b.ptr<T>()[at[0] + i * nest.inner_stride[0]] == T(0);
        if (mine) __atomic_store_n(&zero, true, __ATOMIC_RELAXED);
      });
    });
  }
  if (zero) c.fail("%s: %s divided by zero", name, name_of(c.in[0].dtype));
  return !zero;
}

void floor_divide(const Call& c) {
  if (divisor_fits(c, "floor_divide")) binary(c, RILLE_PICK(row2, F_quotient, c.in[0].dtype, T));
}
void remainder(const Call& c) {
  if (divisor_fits(c, "remainder")) binary(c, RILLE_PICK(row2, F_rest, c.in[0].dtype, T));
}

struct F_axpy {
  static constexpr bool broadcasts = true;
  template <class T>
  RILLE_INLINE T go(T a, T b, T f) {
    return T(a + f * b);
  }
};
void axpy(const Call& c) {
  const View* const views[3] = {&c.out[0], &c.in[0], &c.out[0]};
  walk<3>(c, views, RILLE_PICK(row2, F_axpy, c.out[0].dtype, T), c.attrs->f);
}

void scale(const Call& c) {
  double number = 0;
  View scalar = c.out[0];
  scalar.dtype = row_type(scalar.dtype);
  put_number(scalar.dtype, c.attrs->f[0], &number);
  for (int d = 0; d < scalar.strides.n; ++d) scalar.strides[d] = 0;
  scalar.data = &number;
  const View* const views[3] = {&c.out[0], c.n_in ? &c.in[0] : &scalar, &c.out[0]};
  walk<3>(c, views, RILLE_PICK(row2, F_mul, c.out[0].dtype, T), c.attrs->f);
}

// numbers[0] and numbers[1] are the bounds of clamp.
template <class T>
static void clamp_grad_row(char* const* p, const int64_t* s, int64_t n, const double* numbers) {
  const T *x = reinterpret_cast<const T*>(p[0]), *d = reinterpret_cast<const T*>(p[1]);
  const T low = T(numbers[0]), high = T(numbers[1]);
  T* o = reinterpret_cast<T*>(p[2]);
  for (int64_t i = 0; i < n; ++i) {
    const T v = x[i * s[0]];
    o[i * s[2]] = v >= low && v <= high ? d[i * s[1]] : T(0);
  }
}
void clamp_grad(const Call& c) {
  binary(c, row_type(c.in[0].dtype) == DType::f32 ? &clamp_grad_row<float> : &clamp_grad_row<double>);
}

}  // namespace rille::kernels::RILLE_ISA
