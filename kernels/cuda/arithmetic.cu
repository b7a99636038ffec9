// Kernels of arithmetic.h for each type, and division of integers.
#include "kernels/cuda/device.h"

#define ONE(op, name, T) ENTRY(op##_##name, 256, GIVEN Windows<2> w) { apply_one<F_##op, T, T>(w); }
#define TWO(op, name, T) ENTRY(op##_##name, 256, GIVEN Windows<3> w) { apply_two<F_##op, T, T>(w); }
#define TEST(op, name, T) ENTRY(op##_##name, 256, GIVEN Windows<3> w) { apply_two<F_##op, T, Byte>(w); }
#define UNARY(op, expression) FUNCTION_1(op, expression) FOR_NUMBERS(ONE, op)
#define BINARY(op, expression) FUNCTION_2(op, expression) FOR_NUMBERS(TWO, op)
#define SLOPE(op, expression) FUNCTION_2(op, expression) FOR_FLOATS(TWO, op)
#define COMPARE(op, expression) TEST_2(op, expression) FOR_NUMBERS(TEST, op)
#define BITS(op, expression) FUNCTION_2(op, expression) TWO(op, i64, Long) TWO(op, i32, int) TWO(op, u8, Byte)
#define BITS_NOT(op, expression) FUNCTION_1(op, expression) ONE(op, i64, Long) ONE(op, i32, int) ONE(op, u8, Byte)
#define LOGICAL_NOT(op, expression) FUNCTION_1(op, expression) ONE(op, u8, Byte)
#include "kernels/cuda/arithmetic.h"

namespace rille::kernels::cuda {

// -- Python's // and %: rounds towards minus infinity, and the remainder has b's sign
template <class T, bool rest> struct Quotient {
  // An integer division by zero is reported to the host as a fault.
  DEVICE T of(T a, T b, const Windows<3>& w) {
    if constexpr (IsFloat<T>::value) {
      if constexpr (rest) return rest_of(a, b);
      else return floored(a, b);
    } else {
      if (b == T(0)) {
        report(w.fault, rest ? remainder_by_zero : floor_divide_by_zero, 0, 0, 0, w.type);
        return T(0);
      }
      if (T(-1) < T(0) && b == T(-1)) return rest ? T(0) : T(T(0) - a);   // negating the lowest number wraps
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
