// Updates of many tensors in one launch: a table of tensors comes by value, a block takes one piece of one of them.
#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

// The tensor that this block works on, and its elements [first, end).
struct Place { int tensor; Long first, end; };
DEVICE Place place_of(const Tensors& t) {
  int low = 0, high = t.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (t.first_piece[middle] <= blockIdx.x) low = middle;
    else high = middle - 1;
  }
  const Long first = Long(blockIdx.x - t.first_piece[low]) * tensor_piece, end = first + tensor_piece;
  return {low, first, end < t.elements[low] ? end : t.elements[low]};
}

// body(Count<V>, first element) for this thread's elements of the piece; V where the tensor's memory is aligned.
template <int V, class Body> DEVICE void each_element(const Tensors& t, const Place& p, const Body& body) {
  Long at = p.first + Long(threadIdx.x) * V;
  if (t.packed >> p.tensor & 1) {
    for (; at + V <= p.end; at += Long(blockDim.x) * V) body(Count<V>(), at);
    for (int v = 0; v < V && at + v < p.end; ++v) body(Count<1>(), at + v);   // the last pack is not full
  } else {
    for (at = p.first + threadIdx.x; at < p.end; at += blockDim.x) body(Count<1>(), at);
  }
}
template <class T> DEVICE T* memory(const Tensors& t, const Place& p, int role, Long at) {
  return static_cast<T*>(t.data[role][p.tensor]) + at;
}

// The step's corrections are computed once a block: step and learning rate lie in device memory, so that a captured
// graph sees new ones.
template <class T> DEVICE void adamw(const Tensors& t, const Long* step, const T* lr_at, const AdamW& how) {
  __shared__ T keep_, rate_, root_;
  if (threadIdx.x == 0) {
    const double lr = double(*lr_at), n = double(*step);
    keep_ = T(1 - lr * how.decay);
    rate_ = T(lr / (1 - pow(how.beta1, n)));
    root_ = T(1 / sqrt(1 - pow(how.beta2, n)));
  }
  __syncthreads();
  const T keep = keep_, rate = rate_, root = root_, eps = T(how.eps);
  const T beta1 = T(how.beta1), beta2 = T(how.beta2), rest1 = T(1 - how.beta1), rest2 = T(1 - how.beta2);
  const Place place = place_of(t);
  each_element<pack_of(sizeof(T))>(t, place, [&](auto count, Long at) {
    constexpr int V = decltype(count)::value;
    T p[V], m[V], v[V], g[V];
    load_wide<T, V>(memory<T>(t, place, 0, at), p);
    load_wide<T, V>(memory<T>(t, place, 1, at), m);
    load_wide<T, V>(memory<T>(t, place, 2, at), v);
    load_wide<T, V>(memory<T>(t, place, 3, at), g);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      m[i] = beta1 * m[i] + rest1 * g[i];
      v[i] = beta2 * v[i] + rest2 * g[i] * g[i];
      p[i] = p[i] * keep - rate * m[i] / (sqrt(v[i]) * root + eps);
    }
    store_wide<T, V>(memory<T>(t, place, 0, at), p);
    store_wide<T, V>(memory<T>(t, place, 1, at), m);
    store_wide<T, V>(memory<T>(t, place, 2, at), v);
  });
}

// Roles: parameter, gradient, momentum.
template <class T> DEVICE void sgd(const Tensors& t, const T* lr_at, double momentum_, double decay_, int nesterov) {
  const T lr = *lr_at, momentum = T(momentum_), decay = T(decay_);
  const Place place = place_of(t);
  each_element<pack_of(sizeof(T))>(t, place, [&](auto count, Long at) {
    constexpr int V = decltype(count)::value;
    T p[V], g[V], m[V];
    load_wide<T, V>(memory<T>(t, place, 0, at), p);
    load_wide<T, V>(memory<T>(t, place, 1, at), g);
    if (momentum != T(0)) load_wide<T, V>(memory<T>(t, place, 2, at), m);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const T d = g[i] + decay * p[i];
      if (momentum == T(0)) {
        p[i] -= lr * d;
      } else {
        m[i] = momentum * m[i] + d;
        p[i] -= lr * (nesterov ? d + momentum * m[i] : m[i]);
      }
    }
    store_wide<T, V>(memory<T>(t, place, 0, at), p);
    if (momentum != T(0)) store_wide<T, V>(memory<T>(t, place, 2, at), m);
  });
}

// One f64 sum of squares for each piece, then one block adds them in their order.
template <class T> DEVICE void square_sums(const Tensors& t, double* parts) {
  const Place place = place_of(t);
  double sum = 0;
  each_element<pack_of(sizeof(T))>(t, place, [&](auto count, Long at) {
    constexpr int V = decltype(count)::value;
    T g[V];
    load_wide<T, V>(memory<T>(t, place, 0, at), g);
#pragma unroll
    for (int i = 0; i < V; ++i) sum += double(g[i]) * double(g[i]);
  });
  sum = over_row<Plus>(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}
template <class T> DEVICE void norm_of(const double* parts, Long pieces, T* out) {
  double sum = 0;
  for (Long i = threadIdx.x; i < pieces; i += blockDim.x) sum += parts[i];
  sum = over_row<Plus>(sum);
  if (threadIdx.x == 0) *out = T(sqrt(sum));
}
template <class T> DEVICE void clip(const Tensors& t, const T* norm, double limit) {
  const double wanted = limit / (double(*norm) + 1e-6);
  if (wanted >= 1) return;
  const T factor = T(wanted);
  const Place place = place_of(t);
  each_element<pack_of(sizeof(T))>(t, place, [&](auto count, Long at) {
    constexpr int V = decltype(count)::value;
    T g[V];
    load_wide<T, V>(memory<T>(t, place, 0, at), g);
#pragma unroll
    for (int i = 0; i < V; ++i) g[i] *= factor;
    store_wide<T, V>(memory<T>(t, place, 0, at), g);
  });
}

#define OPTIMIZER(name, T)                                                                             \
  ENTRY(adamw_##name, 256, GIVEN Tensors t, const Long* step, const T* lr, GIVEN AdamW how) {          \
    adamw<T>(t, step, lr, how);                                                                        \
  }                                                                                                    \
  ENTRY(sgd_##name, 256, GIVEN Tensors t, const T* lr, double momentum, double decay, int nesterov) {  \
    sgd<T>(t, lr, momentum, decay, nesterov);                                                          \
  }                                                                                                    \
  ENTRY(square_sums_##name, 256, GIVEN Tensors t, double* parts) { square_sums<T>(t, parts); }         \
  ENTRY(norm_of_##name, 1024, const double* parts, Long pieces, T* out) { norm_of<T>(parts, pieces, out); } \
  ENTRY(clip_##name, 256, GIVEN Tensors t, const T* norm, double limit) { clip<T>(t, norm, limit); }
OPTIMIZER(f32, float)
OPTIMIZER(f64, double)

ENTRY(increment, 32, Long* number) { if (threadIdx.x == 0) ++*number; }

}  // namespace rille::kernels::cuda
