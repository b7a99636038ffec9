// Arithmetic, comparisons and bits: numbers of any type. Whole numbers wrap around.
#include "kernels/cuda/device.h"

namespace rille::kernels::cuda {

#define ONE(op, name, T) ENTRY(op##_##name, 256, GIVEN Windows<2> w) { apply_one<F_##op, T, T>(w); }
#define TWO(op, name, T) ENTRY(op##_##name, 256, GIVEN Windows<3> w) { apply_two<F_##op, T, T>(w); }
#define TEST(op, name, T) ENTRY(op##_##name, 256, GIVEN Windows<3> w) { apply_two<F_##op, T, Byte>(w); }
#define UNARY(op, expression)                                                                   \
  struct F_##op { template <class T> DEVICE T go(T x, T f, T g) { return T(expression); } };    \
  FOR_NUMBERS(ONE, op)
#define BINARY(op, expression)                                                                       \
  struct F_##op { template <class T> DEVICE T go(T a, T b, T f, T g) { return T(expression); } };    \
  FOR_NUMBERS(TWO, op)
#define COMPARE(op, expression)                                                                       \
  struct F_##op { template <class T> DEVICE Byte go(T a, T b, T, T) { return Byte(expression); } };   \
  FOR_NUMBERS(TEST, op)
#define BITS(op, expression)                                                                          \
  struct F_##op { template <class T> DEVICE T go(T a, T b, T, T) { return T(expression); } };         \
  TWO(op, i64, Long) TWO(op, i32, int) TWO(op, u8, Byte)

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a * b)
BINARY(maximum, a < b || b != b ? b : a)   // a NaN on either side comes through
BINARY(minimum, b < a || b != b ? b : a)
BINARY(axpy, a + f * b)
UNARY(neg, -x)
UNARY(abs, x < T(0) ? -x : x)
UNARY(sign, x > T(0) ? T(1) : x < T(0) ? T(-1) : x)
UNARY(clamp, x < f ? f : x > g ? g : x)

struct F_clamp_grad { template <class T> DEVICE T go(T x, T d, T f, T g) { return x >= f && x <= g ? d : T(0); } };
FOR_FLOATS(TWO, clamp_grad)

COMPARE(lt, a < b)
COMPARE(le, a <= b)
COMPARE(gt, a > b)
COMPARE(ge, a >= b)
COMPARE(eq, a == b)
COMPARE(ne, a != b)

BITS(bitwise_and, a & b)
BITS(bitwise_or, a | b)
BITS(bitwise_xor, a ^ b)
struct F_bitwise_not { template <class T> DEVICE T go(T x, T, T) { return T(~x); } };
ONE(bitwise_not, i64, Long) ONE(bitwise_not, i32, int) ONE(bitwise_not, u8, Byte)
struct F_logical_not { template <class T> DEVICE T go(T x, T, T) { return T(x == T(0)); } };
ONE(logical_not, u8, Byte)

// -- as Python's // and %: towards minus infinity, the remainder has b's sign
template <class T, bool rest> struct Quotient {
  // Whole numbers cannot be divided by zero: told to the host.
  DEVICE T of(T a, T b, const Windows<3>& w) {
    if constexpr (IsFloat<T>::value) {
      if constexpr (!rest) return floor(a / b);
      const T r = fmod(a, b);
      return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
    } else {
      if (b == T(0)) {
        report(w.fault, rest ? remainder_by_zero : floor_divide_by_zero, 0, 0, 0, w.type);
        return T(0);
      }
      if (T(-1) < T(0) && b == T(-1)) return rest ? T(0) : T(T(0) - a);   // the lowest number has no counterpart
      const T r = T(a % b);
      const bool turned = r != T(0) && (r < T(0)) != (b < T(0));
      return rest ? T(turned ? r + b : r) : T(a / b - turned);
    }
  }
};
template <class T, bool rest> DEVICE void divided(const Windows<3>& w) {
  each_unit<pack_of(sizeof(T))>(w, [&](auto count, const Long(&at)[3]) {
    constexpr int V = decltype(count)::value;
    Wide<T> a[V], b[V];
    fetch_wide<T, V>(w, 0, at[0], a);
    fetch_wide<T, V>(w, 1, at[1], b);
    Pack<T, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.at[v] = narrow<T>(Quotient<Wide<T>, rest>::of(a[v], b[v], w));
    store(w, at[2], out);
  });
}
#define DIVIDED(op, name, T) ENTRY(op##_##name, 256, GIVEN Windows<3> w) { divided<T, REST>(w); }
#define REST false
FOR_NUMBERS(DIVIDED, floor_divide)
#undef REST
#define REST true
FOR_NUMBERS(DIVIDED, remainder)

}  // namespace rille::kernels::cuda
