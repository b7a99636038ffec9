// Reductions and scans. The input is [outer.., reduced..] with any strides. A block computes 1, 8 or 32 outputs, or
// packs of them; its threads share the reduced elements, and a tree adds their sums. If there are few outputs, several
// blocks (blockIdx.y) share one, and a second kernel adds the parts. The cuts depend on the shape alone, so every GPU
// gives the same bits.
#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

DEVICE Long locate(const Axes& a, Long i) {
  Long at = 0;
  for (int d = 0; d < a.rank - 1; ++d) {
    const Long next = a.wide ? i / a.length[d] : Long(divide(unsigned(i), a.size[d]));
    at += (i - next * a.length[d]) * a.step[d];
    i = next;
  }
  return at + i * a.step[a.rank - 1];
}

template <class T> DEVICE T lowest() { return IsFloat<T>::value ? T(-INFINITY) : T(T(1) << (sizeof(T) * 8 - 1)); }
template <> __device__ __forceinline__ float lowest<float>() { return -INFINITY; }
template <> __device__ __forceinline__ double lowest<double>() { return -INFINITY; }
template <> __device__ __forceinline__ Byte lowest<Byte>() { return 0; }
template <class T> DEVICE T highest() { return T(~lowest<T>()); }
template <> __device__ __forceinline__ float highest<float>() { return INFINITY; }
template <> __device__ __forceinline__ double highest<double>() { return INFINITY; }

// A reduction defines: the type of its sum, the sum of nothing, the sum of an element, of two sums, and the result.
template <class T> struct SumTypes { typedef Wide<T> Sum; typedef T Out; };
template <> struct SumTypes<int> { typedef Long Sum; typedef Long Out; };
template <> struct SumTypes<Small> { typedef Long Sum; typedef Long Out; };
template <> struct SumTypes<Byte> { typedef Long Sum; typedef Long Out; };
template <class T> struct R_sum {
  typedef typename SumTypes<T>::Sum Sum;
  typedef typename SumTypes<T>::Out Out;
  DEVICE Sum nothing() { return Sum(0); }
  DEVICE Sum element(Wide<T> x, Long) { return Sum(x); }
  DEVICE Sum both(Sum a, Sum b) { return a + b; }
  DEVICE Out result(Sum s, double factor) { return narrow<Out>(factor != 0 ? Sum(double(s) * factor) : s); }
};
template <class T> struct ProductOf { typedef double type; };
template <> struct ProductOf<Long> { typedef Long type; };
template <class T> struct R_prod {
  typedef typename ProductOf<T>::type Sum;
  typedef T Out;
  DEVICE Sum nothing() { return Sum(1); }
  DEVICE Sum element(Wide<T> x, Long) { return Sum(x); }
  DEVICE Sum both(Sum a, Sum b) { return a * b; }
  DEVICE Out result(Sum s, double) { return narrow<Out>(Wide<T>(s)); }
};
// The largest or smallest element. If an element is NaN, so is the result.
template <class T, bool largest> struct Extreme {
  typedef Wide<T> Sum;
  typedef T Out;
  DEVICE Sum nothing() { return largest ? lowest<Sum>() : highest<Sum>(); }
  DEVICE Sum element(Wide<T> x, Long) { return x; }
  DEVICE Sum both(Sum a, Sum b) { return a != a || (b == b && (largest ? a > b : a < b)) ? a : b; }
  DEVICE Out result(Sum s, double) { return narrow<Out>(s); }
};
template <class T> struct R_amax : Extreme<T, true> {};
template <class T> struct R_amin : Extreme<T, false> {};
// The value and its index: the first of equal values, or the first NaN.
template <class C> struct Placed { C value; Long place; };
template <class C> DEVICE Placed<C> from_lane(Placed<C> x, int distance) {
  return {C(__shfl_xor_sync(EVERY_LANE, x.value, distance)), __shfl_xor_sync(EVERY_LANE, x.place, distance)};
}
template <class T, bool largest> struct PlaceOf {
  typedef Placed<Wide<T>> Sum;
  typedef Long Out;
  DEVICE Sum nothing() { return {Wide<T>(0), Long(1) << 62}; }
  DEVICE Sum element(Wide<T> x, Long place) { return {x, place}; }
  DEVICE Sum both(const Sum& a, const Sum& b) {
    if (a.place == Long(1) << 62) return b;
    if (b.place == Long(1) << 62) return a;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool equal = a_nan ? b_nan : a.value == b.value;
    if (equal) return a.place < b.place ? a : b;
    return a_nan || (!b_nan && (largest ? a.value > b.value : a.value < b.value)) ? a : b;
  }
  DEVICE Out result(const Sum& s, double) { return s.place; }
};
template <class T> struct R_argmax : PlaceOf<T, true> {};
template <class T> struct R_argmin : PlaceOf<T, false> {};

// Packed: a thread loads whole packs, whose elements belong to one output or, if vertical, to as many outputs.
template <class R, class T> DEVICE void reduce(const Reduction& r) {
  typedef typename R::Sum Sum;
  constexpr int V = pack_of(sizeof(T));
  __shared__ Sum shared[256];
  const unsigned outs = 1u << r.outputs_log2, lanes = 256u >> r.outputs_log2;
  const unsigned mine = r.vertical ? threadIdx.x & (outs - 1) : threadIdx.x / lanes;
  const unsigned lane = r.vertical ? threadIdx.x >> r.outputs_log2 : threadIdx.x & (lanes - 1);
  const int own = r.vertical && r.packed ? V : 1;
  const Long o = (Long(blockIdx.x) * outs + mine) * own, first = blockIdx.y * r.each;
  const Long end = first + r.each < r.reduced ? first + r.each : r.reduced;
  Sum sums[V];
#pragma unroll
  for (int v = 0; v < V; ++v) sums[v] = R::nothing();
  if (o < r.outputs) {
    const T* in = static_cast<const T*>(r.in) + locate(r.outer, o);
    Sum sum = R::nothing();
    if (own > 1) {
#pragma unroll 4
      for (Long i = first + lane; i < end; i += lanes) {
        Wide<T> x[V];
        load_wide<T, V>(in + i * r.inner.step[0], x);
#pragma unroll
        for (int v = 0; v < V; ++v) sums[v] = R::both(sums[v], R::element(x[v], i));
      }
    } else if (r.packed) {
      for (Long i = first + Long(lane) * V; i < end; i += Long(lanes) * V) {
        Wide<T> x[V];
        load_wide<T, V>(in + i, x);
#pragma unroll
        for (int v = 0; v < V; ++v) sum = R::both(sum, R::element(x[v], i + v));
      }
    } else if (r.inner.rank == 1) {
#pragma unroll 4
      for (Long i = first + lane; i < end; i += lanes)
        sum = R::both(sum, R::element(widen(in[i * r.inner.step[0]]), i));
    } else {
      for (Long i = first + lane; i < end; i += lanes)
        sum = R::both(sum, R::element(widen(in[locate(r.inner, i)]), i));
    }
    if (own == 1) sums[0] = sum;
  }
#pragma unroll
  for (int v = 0; v < V; ++v) {
    if (v == own) return;
    Sum sum = sums[v];
    __syncthreads();
    shared[lane * outs + mine] = sum;
    for (unsigned d = lanes / 2; d; d /= 2) {
      __syncthreads();
      if (lane < d) shared[lane * outs + mine] = sum = R::both(sum, shared[(lane + d) * outs + mine]);
    }
    if (lane != 0 || o >= r.outputs) continue;
    if (gridDim.y > 1) static_cast<Sum*>(r.parts)[blockIdx.y * r.outputs + o + v] = sum;
    else static_cast<typename R::Out*>(r.out)[o + v] = R::result(sum, r.factor);
  }
}

template <class R> struct BothOf { template <class S> DEVICE S of(S a, S b) { return R::both(a, b); } };
// One warp per output: combines the sums of the parts.
template <class R> DEVICE void fold(const Reduction& r, unsigned parts) {
  typedef typename R::Sum Sum;
  each_row(r.outputs, [&](Long o) {
    Sum sum = R::nothing();
    for (unsigned p = threadIdx.x; p < parts; p += 32)
      sum = R::both(sum, static_cast<const Sum*>(r.parts)[p * r.outputs + o]);
#pragma unroll
    for (int d = 16; d; d /= 2) sum = R::both(sum, from_lane(sum, d));
    if (threadIdx.x == 0) static_cast<typename R::Out*>(r.out)[o] = R::result(sum, r.factor);
  });
}

#define REDUCE(op, name, T)                                                                           \
  ENTRY(op##_##name, 256, GIVEN Reduction r) { reduce<R_##op<T>, T>(r); }                             \
  ENTRY(op##_fold_##name, 256, GIVEN Reduction r, unsigned parts) { fold<R_##op<T>>(r, parts); }
FOR_NUMBERS(REDUCE, sum)
FOR_FLOATS(REDUCE, prod) REDUCE(prod, i64, Long)
FOR_NUMBERS(REDUCE, amax)
FOR_NUMBERS(REDUCE, amin)
FOR_NUMBERS(REDUCE, argmax)
FOR_NUMBERS(REDUCE, argmin)

// -- scans of contiguous rows, 256 elements at once: visit(index, sum of all elements before it, sum including it)
template <class F, class A, class Load, class Visit>
DEVICE void scan(Long n, int reverse, A carry, const Load& load, const Visit& visit) {
  __shared__ A warps[8];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (Long first = 0; first < n; first += 256) {
    const Long i = first + threadIdx.x, at = reverse ? n - 1 - i : i;
    const A x = i < n ? load(at) : A(0);
    A sum = x;
#pragma unroll
    for (unsigned d = 1; d < 32; d *= 2) {
      const A below = __shfl_up_sync(EVERY_LANE, sum, d);
      if (lane >= d) sum = F::of(below, sum);
    }
    const A one_less = __shfl_up_sync(EVERY_LANE, sum, 1);
    __syncthreads();
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    A before = carry;
    for (unsigned w = 0; w < warp; ++w) before = F::of(before, warps[w]);
    if (i < n) visit(at, lane ? F::of(before, one_less) : before, F::of(before, sum));
    for (unsigned w = 0; w < 8; ++w) carry = F::of(carry, warps[w]);
  }
  __syncthreads();
}
template <class T> struct ScanType { typedef double type; };
template <> struct ScanType<Long> { typedef Long type; };
#define CUMSUM(op, name, T)                                                                                     \
  ENTRY(cumsum_##name, 256, const T* in, T* out, Long rows, Long n, int reverse) {                              \
    typedef ScanType<T>::type A;                                                                                \
    each_row(rows, [&](Long r) {                                                                                \
      scan<Plus>(n, reverse, A(0), [&](Long i) { return A(widen(in[r * n + i])); },                             \
                 [&](Long i, A, A with) { out[r * n + i] = narrow<T>(Wide<T>(with)); });                        \
    });                                                                                                         \
  }
FOR_FLOATS(CUMSUM, cumsum) CUMSUM(cumsum, i64, Long)

// The product of all elements before an element (kept in the output) times the product of all elements after it.
#define PROD_GRAD(op, name, T)                                                                                  \
  ENTRY(prod_grad_##name, 256, const T* in, const T* g, T* out, Wide<T>* before, Long rows, Long n) {           \
    each_row(rows, [&](Long r) {                                                                                \
      const auto load = [&](Long i) { return double(widen(in[r * n + i])); };                                   \
      scan<Times>(n, 0, 1.0, load, [&](Long i, double b, double) { before[r * n + i] = Wide<T>(b); });          \
      scan<Times>(n, 1, double(widen(g[r])), load, [&](Long i, double after, double) {                          \
        out[r * n + i] = narrow<T>(Wide<T>(double(before[r * n + i]) * after));                                 \
      });                                                                                                       \
    });                                                                                                         \
  }
FOR_FLOATS(PROD_GRAD, prod_grad)

}  // namespace rille::kernels::cuda
