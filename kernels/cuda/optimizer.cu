// Updates of many tensors in one launch. The table of tensors is passed by value; a block takes one piece of one
// tensor.
#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

// The tensor that this block updates, and the elements [first, end) of its piece.
struct Piece { int tensor; Long first, end; };
DEVICE Piece piece_of(const Tensors& t) {
  int low = 0, high = t.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (t.first_piece[middle] <= blockIdx.x) low = middle;
    else high = middle - 1;
  }
  const Long first = Long(blockIdx.x - t.first_piece[low]) * tensor_piece, end = first + tensor_piece;
  return {low, first, end < t.elements[low] ? end : t.elements[low]};
}

// Calls body(Count<V>, first element) for this thread's elements of the piece; Count<1> if the memory is not aligned.
template <int V, class Body> DEVICE void each_element(const Tensors& t, const Piece& p, const Body& body) {
  Long at = p.first + Long(threadIdx.x) * V;
  if (t.packed >> p.tensor & 1) {
    for (; at + V <= p.end; at += Long(blockDim.x) * V) body(Count<V>(), at);
    for (int v = 0; v < V && at + v < p.end; ++v) body(Count<1>(), at + v);   // elements after the last full pack
  } else {
    for (at = p.first + threadIdx.x; at < p.end; at += blockDim.x) body(Count<1>(), at);
  }
}
template <class T> DEVICE T* memory(const Tensors& t, const Piece& p, int role, Long at) {
  return static_cast<T*>(t.data[role][p.tensor]) + at;
}

DEVICE bool skipped(const Update& how) { return how.skip && *how.skip != 0.0f; }

// The corrections for the step count are computed once per block. Step counts and learning rate are in device memory,
// so that a captured graph reads new values. Memories: parameter, first and second moment, gradient (of type G).
template <class T, class G = T>
DEVICE void adamw(const Tensors& t, const Long* steps, const T* lr_at, const Update& how) {
  __shared__ T keep_, rate_, root_;
  if (skipped(how)) return;
  const Piece place = piece_of(t);
  if (threadIdx.x == 0) {
    const double lr = double(*lr_at), n = double(steps[t.number[place.tensor]]);
    keep_ = T(how.coupled ? 1 : 1 - lr * how.decay);
    rate_ = T(lr / (1 - pow(how.beta1, n)));
    root_ = T(1 / sqrt(1 - pow(how.beta2, n)));
  }
  __syncthreads();
  const T keep = keep_, rate = rate_, root = root_, eps = T(how.eps), l2 = T(how.coupled ? how.decay : 0);
  const T beta1 = T(how.beta1), beta2 = T(how.beta2), rest1 = T(1 - how.beta1), rest2 = T(1 - how.beta2);
  each_element<pack_of(sizeof(T))>(t, place, [&](auto count, Long at) {
    constexpr int V = decltype(count)::value;
    T p[V], m[V], v[V], g[V];
    load_wide<T, V>(memory<T>(t, place, 0, at), p);
    load_wide<T, V>(memory<T>(t, place, 1, at), m);
    load_wide<T, V>(memory<T>(t, place, 2, at), v);
    load_wide<G, V>(memory<G>(t, place, 3, at), g);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const T d = g[i] + l2 * p[i];
      m[i] = beta1 * m[i] + rest1 * d;
      v[i] = beta2 * v[i] + rest2 * d * d;
      p[i] = p[i] * keep - rate * m[i] / (sqrt(v[i]) * root + eps);
    }
    store_wide<T, V>(memory<T>(t, place, 0, at), p);
    store_wide<T, V>(memory<T>(t, place, 1, at), m);
    store_wide<T, V>(memory<T>(t, place, 2, at), v);
  });
}

// Memories of a tensor: parameter, gradient, momentum.
template <class T> DEVICE void sgd(const Tensors& t, const T* lr_at, const Update& how) {
  if (skipped(how)) return;
  const T lr = *lr_at, momentum = T(how.beta1), l2 = T(how.coupled ? how.decay : 0);
  const T keep = T(how.coupled ? 1 : 1 - double(lr) * how.decay);
  const Piece place = piece_of(t);
  each_element<pack_of(sizeof(T))>(t, place, [&](auto count, Long at) {
    constexpr int V = decltype(count)::value;
    T p[V], g[V], m[V];
    load_wide<T, V>(memory<T>(t, place, 0, at), p);
    load_wide<T, V>(memory<T>(t, place, 1, at), g);
    if (momentum != T(0)) load_wide<T, V>(memory<T>(t, place, 2, at), m);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      T d = g[i] + l2 * p[i];
      if (momentum != T(0)) {
        m[i] = momentum * m[i] + d;
        d = how.nesterov ? d + momentum * m[i] : m[i];
      }
      p[i] = p[i] * keep - lr * d;
    }
    store_wide<T, V>(memory<T>(t, place, 0, at), p);
    if (momentum != T(0)) store_wide<T, V>(memory<T>(t, place, 2, at), m);
  });
}

// Memories of a tensor: parameter, gradient, momentum.
template <class T> DEVICE void lion(const Tensors& t, const T* lr_at, const Update& how) {
  if (skipped(how)) return;
  const T rate = *lr_at, keep = T(1 - double(rate) * how.decay);
  const T beta1 = T(how.beta1), beta2 = T(how.beta2), rest1 = T(1 - how.beta1), rest2 = T(1 - how.beta2);
  const Piece place = piece_of(t);
  each_element<pack_of(sizeof(T))>(t, place, [&](auto count, Long at) {
    constexpr int V = decltype(count)::value;
    T p[V], g[V], m[V];
    load_wide<T, V>(memory<T>(t, place, 0, at), p);
    load_wide<T, V>(memory<T>(t, place, 1, at), g);
    load_wide<T, V>(memory<T>(t, place, 2, at), m);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const T u = beta1 * m[i] + rest1 * g[i];
      p[i] = p[i] * keep - (u > T(0) ? rate : u < T(0) ? -rate : T(0));
      m[i] = beta2 * m[i] + rest2 * g[i];
    }
    store_wide<T, V>(memory<T>(t, place, 0, at), p);
    store_wide<T, V>(memory<T>(t, place, 2, at), m);
  });
}

// Memories of a tensor: the average, and the tensor to average.
template <class T> DEVICE void average(const Tensors& t, const Long* steps_at, const Update& how) {
  if (skipped(how)) return;
  const double steps = steps_at ? double(*steps_at) : 0.0, young = (1 + steps) / (10 + steps);
  const double weight = steps_at && young < how.beta1 ? young : how.beta1;
  const T keep = T(weight), rest = T(1 - weight);
  const Piece place = piece_of(t);
  each_element<pack_of(sizeof(T))>(t, place, [&](auto count, Long at) {
    constexpr int V = decltype(count)::value;
    T y[V], x[V];
    load_wide<T, V>(memory<T>(t, place, 0, at), y);
    load_wide<T, V>(memory<T>(t, place, 1, at), x);
#pragma unroll
    for (int i = 0; i < V; ++i) y[i] = keep * y[i] + rest * x[i];
    store_wide<T, V>(memory<T>(t, place, 0, at), y);
  });
}

// Sets the flag, which was 0, if a gradient is not finite. x - x is 0 for a finite x, else NaN.
template <class T> DEVICE void unscale(const Tensors& t, const float* scale, float* flag) {
  const T factor = T(1 / double(*scale));
  const Piece place = piece_of(t);
  T odd = 0;
  each_element<pack_of(sizeof(T))>(t, place, [&](auto count, Long at) {
    constexpr int V = decltype(count)::value;
    T g[V];
    load_wide<T, V>(memory<T>(t, place, 0, at), g);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      odd += g[i] - g[i];
      g[i] *= factor;
    }
    store_wide<T, V>(memory<T>(t, place, 0, at), g);
  });
  if (!(odd == T(0))) *flag = 1.0f;                // every writing thread writes the same value
}

// One f64 sum of squares per piece; later one block adds them in order.
template <class T> DEVICE void square_sums(const Tensors& t, double* parts) {
  const Piece place = piece_of(t);
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
  const Piece place = piece_of(t);
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
  ENTRY(adamw_##name, 256, GIVEN Tensors t, const Long* steps, const T* lr, GIVEN Update how) {        \
    adamw<T>(t, steps, lr, how);                                                                       \
  }                                                                                                    \
  ENTRY(sgd_##name, 256, GIVEN Tensors t, const T* lr, GIVEN Update how) { sgd<T>(t, lr, how); }       \
  ENTRY(lion_##name, 256, GIVEN Tensors t, const T* lr, GIVEN Update how) { lion<T>(t, lr, how); }     \
  ENTRY(average_##name, 256, GIVEN Tensors t, const Long* steps, GIVEN Update how) {                   \
    average<T>(t, steps, how);                                                                         \
  }                                                                                                    \
  ENTRY(unscale_##name, 256, GIVEN Tensors t, const float* scale, float* flag) {                       \
    unscale<T>(t, scale, flag);                                                                        \
  }                                                                                                    \
  ENTRY(square_sums_##name, 256, GIVEN Tensors t, double* parts) { square_sums<T>(t, parts); }         \
  ENTRY(norm_of_##name, 1024, const double* parts, Long pieces, T* out) { norm_of<T>(parts, pieces, out); } \
  ENTRY(clip_##name, 256, GIVEN Tensors t, const T* norm, double limit) { clip<T>(t, norm, limit); }
OPTIMIZER(f32, float)
OPTIMIZER(f64, double)

ENTRY(adamw_f32_f16, 256, GIVEN Tensors t, const Long* steps, const float* lr, GIVEN Update how) {
  adamw<float, Half>(t, steps, lr, how);
}
ENTRY(adamw_f32_bf16, 256, GIVEN Tensors t, const Long* steps, const float* lr, GIVEN Update how) {
  adamw<float, Brain>(t, steps, lr, how);
}

ENTRY(increment, 256, Long* numbers, Long n, const float* skip) {
  if (skip && *skip != 0.0f) return;
  const Long stride = Long(gridDim.x) * blockDim.x;
  for (Long i = Long(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) ++numbers[i];
}

ENTRY(loss_scale, 32, const float* flag, float* scale, Long* good, Long each, double grow, double shrink) {
  if (threadIdx.x != 0) return;
  if (*flag != 0.0f) {
    *scale = float(double(*scale) * shrink);
    *good = 0;
  } else if (++*good >= each) {
    const float grown = float(double(*scale) * grow);
    if (isfinite(grown)) *scale = grown;
    *good = 0;
  }
}

}  // namespace rille::kernels::cuda
