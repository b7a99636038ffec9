// Comparisons, bit operations, and selection by a condition.
// Comparisons return bool. where: in = {bool, a, b}. Bit operations take integers and bool.
#include "kernels/walk.hpp"

namespace rille::kernels::RILLE_ISA {

#define COMPARE(name, expression)             \
  struct F_##name {                           \
    static constexpr bool broadcasts = false; \
    template <class T>                        \
    RILLE_INLINE uint8_t go(T a, T b, T) {    \
      return (expression);                    \
    }                                         \
  };                                          \
  void name(const Call& c) { binary(c, RILLE_PICK(row2, F_##name, c.in[0].dtype, uint8_t)); }

COMPARE(lt, a < b)
COMPARE(le, a <= b)
COMPARE(gt, a > b)
COMPARE(ge, a >= b)
COMPARE(eq, a == b)
COMPARE(ne, a != b)

// Bit operations ignore the sign, so there is one instance per integer size.
#define BITS(name, expression)                                       \
  struct F_##name {                                                  \
    static constexpr bool broadcasts = false;                        \
    template <class T>                                               \
    RILLE_INLINE T go(T a, T b, T) {                                 \
      return T(expression);                                          \
    }                                                                \
  };                                                                 \
  void name(const Call& c) {                                         \
    const size_t size = size_bytes(c.in[0].dtype);                   \
    binary(c, size == 8   ? Row(&row2<F_##name, int64_t, int64_t>)   \
              : size == 4 ? Row(&row2<F_##name, int32_t, int32_t>)   \
                          : Row(&row2<F_##name, uint8_t, uint8_t>)); \
  }

BITS(bitwise_and, a& b)
BITS(bitwise_or, a | b)
BITS(bitwise_xor, a ^ b)

struct F_not {
  template <class T>
  RILLE_INLINE T go(T x, T, T) {
    return T(~x);
  }
};
struct F_logical_not {
  template <class T>
  RILLE_INLINE T go(T x, T, T) {
    return T(x == T(0));
  }
};
void bitwise_not(const Call& c) {
  if (c.in[0].dtype == DType::boolean) return unary(c, &row1<F_logical_not, uint8_t, uint8_t>);
  const size_t size = size_bytes(c.in[0].dtype);
  unary(c, size == 8   ? Row(&row1<F_not, int64_t, int64_t>)
           : size == 4 ? Row(&row1<F_not, int32_t, int32_t>)
                       : Row(&row1<F_not, uint8_t, uint8_t>));
}

// One instance per element size, because elements are only copied.
template <class T>
static void where_row(char* const* p, const int64_t* s, int64_t n, const double*) {
  const auto* w = reinterpret_cast<const uint8_t*>(p[0]);
  const T *a = reinterpret_cast<const T*>(p[1]), *b = reinterpret_cast<const T*>(p[2]);
  T* o = reinterpret_cast<T*>(p[3]);
  for (int64_t i = 0; i < n; ++i) o[i * s[3]] = w[i * s[0]] ? a[i * s[1]] : b[i * s[2]];
}

void where(const Call& c) {
  const size_t size = size_bytes(c.out[0].dtype);
  const Row row = size == 8   ? &where_row<uint64_t>
                  : size == 4 ? &where_row<uint32_t>
                  : size == 2 ? &where_row<uint16_t>
                              : &where_row<uint8_t>;
  if (asked(c, row, true)) return;
  const View* const views[4] = {&c.in[0], &c.in[1], &c.in[2], &c.out[0]};
  const auto nest = make_nest<4>(views);
  for_rows(c, nest, [&](const int64_t* at, int64_t n) {
    char* p[4];
    for (int k = 0; k < 4; ++k) p[k] = views[k]->ptr<char>() + at[k] * int64_t(size_bytes(views[k]->dtype));
    row(p, nest.inner_stride, n, nullptr);
  });
}

}  // namespace rille::kernels::RILLE_ISA
