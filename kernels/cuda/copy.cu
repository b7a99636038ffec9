// Kernels that copy, cast and fill memory.
#include "kernels/cuda/device.h"

namespace rille::kernels::cuda {

template <class T> DEVICE void copied(const Windows<2>& w) {
  each_unit<pack_of(sizeof(T))>(w, [&](auto count, const Long(&at)[2]) {
    constexpr int V = decltype(count)::value;
    store(w, at[1], fetch<T, V>(w, 0, at[0]));
  });
}
#define COPY(op, size, T) ENTRY(op##_##size, 256, GIVEN Windows<2> w) { copied<T>(w); }
FOR_SIZES(COPY, copy)

template <class T> DEVICE void chosen(const Windows<4>& w) {
  each_unit<pack_of(sizeof(T))>(w, [&](auto count, const Long(&at)[4]) {
    constexpr int V = decltype(count)::value;
    const auto c = fetch<Byte, V>(w, 0, at[0]);
    const auto a = fetch<T, V>(w, 1, at[1]), b = fetch<T, V>(w, 2, at[2]);
    Pack<T, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.at[v] = c.at[v] ? a.at[v] : b.at[v];
    store(w, at[3], out);
  });
}
#define WHERE(op, size, T) ENTRY(op##_##size, 256, GIVEN Windows<4> w) { chosen<T>(w); }
FOR_SIZES(WHERE, where)

template <class T> DEVICE void filled(const Windows<1>& w, Long bits) {
  each_unit<pack_of(sizeof(T))>(w, [&](auto count, const Long(&at)[1]) {
    constexpr int V = decltype(count)::value;
    Pack<T, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.at[v] = T(bits);
    store(w, at[0], out);
  });
}
#define FILL(op, size, T) ENTRY(op##_##size, 256, GIVEN Windows<1> w, Long bits) { filled<T>(w, bits); }
FOR_SIZES(FILL, fill)

template <class From, class To> DEVICE void cast(const Windows<2>& w) {
  each_unit<pack_both<From, To>()>(w, [&](auto count, const Long(&at)[2]) {
    constexpr int V = decltype(count)::value;
    Wide<From> x[V];
    fetch_wide<From, V>(w, 0, at[0], x);
    Pack<To, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.at[v] = Convert<To>::of(x[v]);
    store(w, at[1], out);
  });
}
#define CAST_TO(from, To) \
  ENTRY(cast_##from##_##To, 256, GIVEN Windows<2> w) { cast<from##_t, To##_t>(w); }
typedef float f32_t; typedef double f64_t; typedef Half f16_t; typedef Brain bf16_t; typedef Long i64_t;
typedef int i32_t; typedef Small i8_t; typedef Byte u8_t; typedef Bool bool_t;
#define CAST(op, from, From)                                                                       \
  CAST_TO(from, bool) CAST_TO(from, u8) CAST_TO(from, i8) CAST_TO(from, i32) CAST_TO(from, i64)   \
  CAST_TO(from, f16) CAST_TO(from, bf16) CAST_TO(from, f32) CAST_TO(from, f64)
FOR_NUMBERS(CAST, cast)

#define ARANGE(op, name, T)                                                                        \
  ENTRY(op##_##name, 256, T* out, Long n, double start, double step) {                             \
    const Long stride = Long(gridDim.x) * blockDim.x;                                              \
    for (Long i = Long(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)                 \
      out[i] = narrow<T>(Wide<T>(start + double(i) * step));                                       \
  }
FOR_NUMBERS(ARANGE, arange)

}  // namespace rille::kernels::cuda
