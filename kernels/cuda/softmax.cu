// Softmax and cross entropy over contiguous rows. One pass finds the maximum of a row and the sum of e^(x - maximum)
// (Milakov and Gimelshein 2018); the row is read again, from the caches, to write the result.
#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

template <class C> struct Scaled { C largest, sum; };   // sum: of e^(x - largest)

// The factor e^(from - to). Equal arguments give 1, so a row of only -inf never computes -inf - -inf.
template <class C> DEVICE C shrink(C from, C to) { return from == to ? C(1) : fast_exp(from - to); }
template <class C> DEVICE Scaled<C> joined(Scaled<C> a, Scaled<C> b) {
  const C m = a.largest < b.largest ? b.largest : a.largest;
  return {m, a.sum * shrink(a.largest, m) + b.sum * shrink(b.largest, m)};
}
struct Join { template <class C> DEVICE Scaled<C> of(Scaled<C> a, Scaled<C> b) { return joined(a, b); } };
template <class C> DEVICE Scaled<C> from_lane(Scaled<C> x, int distance) {
  return {__shfl_xor_sync(EVERY_LANE, x.largest, distance), __shfl_xor_sync(EVERY_LANE, x.sum, distance)};
}

template <class C> DEVICE C minus_infinity() { return C(-INFINITY); }

template <class T> DEVICE Scaled<Wide<T>> scan_row(const T* row, Long n, int packed) {
  typedef Wide<T> C;
  Scaled<C> mine{minus_infinity<C>(), C(0)};
  each_column<pack_of(sizeof(T))>(n, packed, [&](auto count, Long j) {
    constexpr int V = decltype(count)::value;
    C x[V];
    load_wide<T, V>(row + j, x);
    C m = mine.largest;
#pragma unroll
    for (int v = 0; v < V; ++v) m = x[v] > m ? x[v] : m;
    C sum = mine.sum * shrink(mine.largest, m);
#pragma unroll
    for (int v = 0; v < V; ++v) sum += x[v] == m ? C(1) : fast_exp(x[v] - m);
    mine = {m, sum};
  });
  return over_row<Join>(mine);
}

template <class T, bool logarithm>
DEVICE void softmax(const T* in, T* out, Long rows, Long n, int packed) {
  typedef Wide<T> C;
  each_row(rows, [&](Long r) {
    const T* row = in + r * n;
    T* y = out + r * n;
    const Scaled<C> all = scan_row(row, n, packed);
    const C rest = log(all.sum), scale = C(1) / all.sum;
    each_column<pack_of(sizeof(T))>(n, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C x[V];
      load_wide<T, V>(row + j, x);
#pragma unroll
      for (int v = 0; v < V; ++v) x[v] = logarithm ? x[v] - all.largest - rest : fast_exp(x[v] - all.largest) * scale;
      store_wide<T, V>(y + j, x);
    });
  });
}

// From the output y: softmax gives y (g - sum(y g)); log_softmax gives g - e^y sum(g).
template <class T, bool logarithm>
DEVICE void softmax_grad(const T* y, const T* g, T* out, Long rows, Long n, int packed) {
  typedef Wide<T> C;
  each_row(rows, [&](Long r) {
    C dot = 0;
    each_column<pack_of(sizeof(T))>(n, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C a[V], b[V];
      load_wide<T, V>(y + r * n + j, a);
      load_wide<T, V>(g + r * n + j, b);
#pragma unroll
      for (int v = 0; v < V; ++v) dot += logarithm ? b[v] : a[v] * b[v];
    });
    dot = over_row<Plus>(dot);
    each_column<pack_of(sizeof(T))>(n, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C a[V], b[V];
      load_wide<T, V>(y + r * n + j, a);
      load_wide<T, V>(g + r * n + j, b);
#pragma unroll
      for (int v = 0; v < V; ++v) b[v] = logarithm ? b[v] - fast_exp(a[v]) * dot : a[v] * (b[v] - dot);
      store_wide<T, V>(out + r * n + j, b);
    });
  });
}

// Each row's loss, and two parts of its log-sum-exp: the largest logit, and the logarithm of the sum relative to it. An
// ignored row has a loss of 0.
template <class T>
DEVICE void cross_entropy(const T* in, const void* labels, unsigned label_type, Wide<T>* parts, Wide<T>* losses,
                          Long rows, Long n, int packed, Long ignore, double smooth, Fault* fault) {
  typedef Wide<T> C;
  each_row(rows, [&](Long r) {
    const T* row = in + r * n;
    const Scaled<C> all = scan_row(row, n, packed);
    const C rest = log(all.sum);
    C mean = 0;
    if (smooth != 0) {
      for (Long j = threadIdx.x; j < n; j += blockDim.x) mean += widen(row[j]);
      mean = over_row<Plus>(mean) / C(n);
    }
    if (threadIdx.x != 0) return;
    const Long label = id_at(labels, label_type, r);
    const bool counts = label != ignore, fits = label >= 0 && label < n;
    if (counts && !fits) report(fault, cross_entropy_label, label, n, r);
    parts[2 * r] = all.largest;
    parts[2 * r + 1] = rest;
    const C x = fits ? widen(row[label]) : C(0);
    losses[r] = counts && fits ? (all.largest - x) + rest + C(smooth) * (x - mean) : C(0);
  });
}

// One block: the mean of the losses of rows that are not ignored. Each thread sums in f64.
template <class C>
DEVICE void cross_entropy_mean(const C* losses, const void* labels, unsigned label_type, Long rows, Long ignore,
                               C* out) {
  double sum = 0;
  Long counted = 0;
  for (Long r = threadIdx.x; r < rows; r += blockDim.x) {
    sum += double(losses[r]);
    counted += id_at(labels, label_type, r) != ignore;
  }
  sum = over_row<Plus>(sum);
  counted = over_row<Plus>(counted);
  if (threadIdx.x == 0) *out = C(sum / double(counted));
}

template <class T>
DEVICE void cross_entropy_grad(const Wide<T>* gradient, const T* in, const void* labels, unsigned label_type,
                               const Wide<T>* parts, T* out, Long rows, Long n, int packed, Long ignore, double smooth,
                               const unsigned long long* counted) {
  typedef Wide<T> C;
  const C g = *gradient / C(*counted), every = C(smooth) / C(n), hit = C(1) - C(smooth);
  each_row(rows, [&](Long r) {
    const Long label = id_at(labels, label_type, r);
    const C factor = label == ignore ? C(0) : g, largest = parts[2 * r], rest = parts[2 * r + 1];
    each_column<pack_of(sizeof(T))>(n, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C x[V];
      load_wide<T, V>(in + r * n + j, x);
#pragma unroll
      for (int v = 0; v < V; ++v)
        x[v] = (fast_exp(x[v] - largest - rest) - every - (j + v == label ? hit : C(0))) * factor;
      store_wide<T, V>(out + r * n + j, x);
    });
  });
}

#define SOFTMAX(op, name, T)                                                                                     \
  ENTRY(softmax_##name, 512, const T* in, T* out, Long rows, Long n, int packed) {                              \
    softmax<T, false>(in, out, rows, n, packed);                                                                 \
  }                                                                                                              \
  ENTRY(log_softmax_##name, 512, const T* in, T* out, Long rows, Long n, int packed) {                          \
    softmax<T, true>(in, out, rows, n, packed);                                                                  \
  }                                                                                                              \
  ENTRY(softmax_grad_##name, 512, const T* y, const T* g, T* out, Long rows, Long n, int packed) {              \
    softmax_grad<T, false>(y, g, out, rows, n, packed);                                                          \
  }                                                                                                              \
  ENTRY(log_softmax_grad_##name, 512, const T* y, const T* g, T* out, Long rows, Long n, int packed) {          \
    softmax_grad<T, true>(y, g, out, rows, n, packed);                                                           \
  }                                                                                                              \
  ENTRY(cross_entropy_##name, 512, const T* in, const void* labels, unsigned label_type, Wide<T>* parts,        \
        Wide<T>* losses, Long rows, Long n, int packed, Long ignore, double smooth, Fault* fault) {              \
    cross_entropy<T>(in, labels, label_type, parts, losses, rows, n, packed, ignore, smooth, fault);               \
  }                                                                                                              \
  ENTRY(cross_entropy_grad_##name, 512, const Wide<T>* g, const T* in, const void* labels, unsigned label_type, \
        const Wide<T>* parts, T* out, Long rows, Long n, int packed, Long ignore, double smooth,                   \
        const unsigned long long* counted) {                                                                     \
    cross_entropy_grad<T>(g, in, labels, label_type, parts, out, rows, n, packed, ignore, smooth, counted);        \
  }
FOR_FLOATS(SOFTMAX, softmax)
ENTRY(cross_entropy_mean_f32, 1024, const float* losses, const void* labels, unsigned label_type, Long rows,
      Long ignore,
      float* out) { cross_entropy_mean(losses, labels, label_type, rows, ignore, out); }
ENTRY(cross_entropy_mean_f64, 1024, const double* losses, const void* labels, unsigned label_type, Long rows,
      Long ignore,
      double* out) { cross_entropy_mean(losses, labels, label_type, rows, ignore, out); }

// Counts the labels that are not ignored; integer sums are the same in any order.
ENTRY(count_labels, 256, const void* labels, unsigned label_type, Long rows, Long ignore, unsigned long long* counted) {
  Long mine = 0;
  const Long stride = Long(gridDim.x) * blockDim.x;
  for (Long r = Long(blockIdx.x) * blockDim.x + threadIdx.x; r < rows; r += stride)
    mine += id_at(labels, label_type, r) != ignore;
  mine = over_row<Plus>(mine);
  if (threadIdx.x == 0 && mine) atomicAdd(counted, static_cast<unsigned long long>(mine));
}

}  // namespace rille::kernels::cuda
