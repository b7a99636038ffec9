// Combines the contributions of several ranks in rank order, in blocks that fit the first-level cache. The result may
// alias a contribution, so a block is written only after all contributions to it were read.
#include "kernels/fold.hpp"

#include "kernels/half.hpp"

namespace rille::kernels::RILLE_ISA {

static constexpr int64_t block = 1024;

RILLE_INLINE float plus(float a, float b) { return a + b; }
RILLE_INLINE double plus(double a, double b) { return a + b; }
RILLE_INLINE int32_t plus(int32_t a, int32_t b) { return int32_t(uint32_t(a) + uint32_t(b)); }
RILLE_INLINE int64_t plus(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
RILLE_INLINE float times(float a, float b) { return a * b; }
RILLE_INLINE double times(double a, double b) { return a * b; }
RILLE_INLINE int32_t times(int32_t a, int32_t b) { return int32_t(uint32_t(a) * uint32_t(b)); }
RILLE_INLINE int64_t times(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

template <class A>
static void join(Fold op, A* __restrict acc, const A* __restrict x, int64_t n) {
  switch (op) {
    case Fold::sum:
    case Fold::mean:
      for (int64_t i = 0; i < n; ++i) acc[i] = plus(acc[i], x[i]);
      return;
    case Fold::product:
      for (int64_t i = 0; i < n; ++i) acc[i] = times(acc[i], x[i]);
      return;
    // A comparison with NaN is false and selects x, so a NaN in x is kept; the second test keeps a NaN in acc.
    case Fold::max:
      for (int64_t i = 0; i < n; ++i) acc[i] = acc[i] > x[i] || acc[i] != acc[i] ? acc[i] : x[i];
      return;
    case Fold::min:
      for (int64_t i = 0; i < n; ++i) acc[i] = acc[i] < x[i] || acc[i] != acc[i] ? acc[i] : x[i];
      return;
  }
}

// T: the type in memory; A: the type in which contributions are accumulated.
template <class T, class A>
static void fold_rows(const Call& c) {
  const Fold op = Fold(c.attrs->i[0]);
  const View& out = c.out[0];
  const int64_t n = out.count();
  alignas(64) A acc[block], wide[block];
  for (int64_t at = 0; at < n; at += block) {
    const int64_t m = n - at < block ? n - at : block;
    for (int k = 0; k < c.n_in; ++k) {
      const T* x = c.in[k].ptr<T>() + at;
      if constexpr (sizeof(T) == 2) {
        widen_row(out.dtype, reinterpret_cast<const uint16_t*>(x), 1, k ? wide : acc, m);
        if (k) join(op, acc, wide, m);
      } else if (k) {
        join(op, acc, x, m);
      } else {
        memcpy(acc, x, size_t(m) * sizeof(A));
      }
    }
    if (op == Fold::mean)
      for (int64_t i = 0; i < m; ++i) acc[i] = acc[i] / A(c.n_in);
    if constexpr (sizeof(T) == 2) narrow_row(out.dtype, acc, out.ptr<uint16_t>() + at, 1, m);
    else memcpy(out.ptr<T>() + at, acc, size_t(m) * sizeof(A));
  }
}

void fold(const Call& c) {
  switch (c.out[0].dtype) {
    case DType::f16:
    case DType::bf16: return fold_rows<uint16_t, float>(c);
    case DType::f32: return fold_rows<float, float>(c);
    case DType::f64: return fold_rows<double, double>(c);
    case DType::i32: return fold_rows<int32_t, int32_t>(c);
    case DType::i64: return fold_rows<int64_t, int64_t>(c);
    default: return c.fail("a fold over the type %s is not supported", name_of(c.out[0].dtype));
  }
}

}  // namespace rille::kernels::RILLE_ISA
