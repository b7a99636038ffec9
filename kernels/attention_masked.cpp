// Attention with masks, a number of keys per batch entry, and groups of query heads that share keys and values;
// kernels/attention.cpp supports none of these. Views [b, h, t, d] whose last stride is 1. attrs.f[0]: scale;
// attrs.i[0]: 1 for causal (query i sees keys <= i + s - t). A query that sees no key gives zeros.
//
// Forward: one thread computes a (batch, head) pair, 64 queries at a time. Backward: one thread computes a (batch, key
// head) pair and the query heads that share it, one after another, so that gradients of keys and values are added in a
// fixed order.
#include <omp.h>

#include "kernels/gemm.hpp"
#include "kernels/nest.hpp"
#include "kernels/rows.hpp"

namespace rille::kernels::RILLE_ISA {

static constexpr int64_t block = 64;

template <class T>
struct Matrix {
  T* data;
  int64_t stride;
};

template <class T>
static Matrix<T> head_of(const View& v, int64_t b, int64_t h) {
  return {v.ptr<T>() + b * v.strides[0] + h * v.strides[1], v.strides[2]};
}

// The operands of one head, of the forward or the backward call.
struct Head {
  const View &q, &k, &mask, &lengths;
  int64_t b, h, t, s, d;
  bool causal;
  int64_t keys_of(int64_t i) const {  // the number of leading keys that query i may see
    int64_t n = causal ? i + 1 + s - t : s;
    if (lengths.data && n > lengths.ptr<int64_t>()[b]) n = lengths.ptr<int64_t>()[b];
    return n < 0 ? 0 : n > s ? s : n;
  }
};

// Applies the mask to the scores of query i, in place.
template <class T>
static void mask_row(const Head& a, int64_t i, T* row, int64_t n) {
  if (!a.mask.data) return;
  const int64_t *m = a.mask.strides.d, at = a.b * m[0] + a.h * m[1] + i * m[2];
  if (a.mask.dtype == DType::boolean) {
    const uint8_t* seen = a.mask.ptr<uint8_t>() + at;
    for (int64_t j = 0; j < n; ++j) row[j] = seen[j * m[3]] ? row[j] : -T(__builtin_inff());
  } else {
    const T* bias = a.mask.ptr<T>() + at;
    for (int64_t j = 0; j < n; ++j) row[j] += bias[j * m[3]];
  }
}

template <class T>
static bool forward_head(const Call& c, const Head& a, Matrix<T> q, Matrix<T> k, Matrix<T> v, T* scores) {
  const auto o = head_of<T>(c.out[0], a.b, a.h);
  const int64_t e = c.in[2].shape[3];
  T* lse = c.out[1].ptr<T>() + (a.b * a.q.shape[1] + a.h) * a.t;
  for (int64_t first = 0; first < a.t && !c.stopped(); first += block) {
    const int64_t rows = a.t - first < block ? a.t - first : block, keys = a.keys_of(first + rows - 1);
    if (keys && !gemm(false, true, rows, keys, a.d, T(c.attrs->f[0]), q.data + first * q.stride, q.stride, k.data,
                      k.stride, T(0), scores, keys))
      return false;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t n = a.keys_of(first + r);
      T* row = scores + r * keys;
      mask_row(a, first + r, row, n);
      const T m = row_max(row, n);
      const bool blind = !(m > -T(__builtin_inff()));
      const T sum = blind ? T(0) : row_exp(row, row, n, m), scale = blind ? T(0) : T(1) / sum;
      for (int64_t j = 0; j < n; ++j) row[j] = blind ? T(0) : row[j] * scale;
      for (int64_t j = n; j < keys; ++j) row[j] = 0;
      lse[first + r] = blind ? T(__builtin_inff()) : m + vlog(sum);
      if (keys == 0)
        for (int64_t j = 0; j < e; ++j) o.data[(first + r) * o.stride + j] = 0;
    }
    if (keys && !gemm(false, false, rows, e, keys, T(1), scores, keys, v.data, v.stride, T(0),
                      o.data + first * o.stride, o.stride))
      return false;
  }
  return true;
}

template <class T>
static void forward(const Call& c) {
  const View &q = c.in[0], &k = c.in[1];
  const int64_t heads = q.shape[1], group = heads / k.shape[1], pairs = q.shape[0] * heads, s = k.shape[2];
  T* scratch = static_cast<T*>(c.lane->scratch(size_t(omp_get_max_threads() * block * s) * sizeof(T)));
  if (!scratch && s)
    return c.fail("attention: no memory for %lld scores\nwork on smaller tensors or batches, or free tensors",
                  (long long)(block * s));
  bool ok = true;
#pragma omp parallel for schedule(static) if (pairs > 1)
  for (int64_t p = 0; p < pairs; ++p) {
    const int64_t b = p / heads, h = p % heads;
    const Head head{q, k, c.in[3], c.in[4], b, h, q.shape[2], s, q.shape[3], c.attrs->i[0] == 1};
    if (!forward_head<T>(c, head, head_of<T>(q, b, h), head_of<T>(k, b, h / group), head_of<T>(c.in[2], b, h / group),
                         scratch + omp_get_thread_num() * block * s))
      __atomic_store_n(&ok, false, __ATOMIC_RELAXED);
  }
  if (!ok) c.fail("attention: oneDNN could not compute a matrix product");
}
// in: q [b, h, t, d], k [b, g, s, d], v [b, g, s, e], g a divisor of h; mask [b, h, t, s] with any strides, or null:
// bool, true where a key is visible, or of q's type, added to the scores; lengths [b], i64, or null: the number of
// visible keys. out: o [b, h, t, e], log-sum-exp [b, h, t], infinite if no key is visible
void attention_masked(const Call& c) { RILLE_FLOATS(c.in[0].dtype, forward<T>(c)); }

// Computes as kernels/attention.cpp does; hidden keys have a probability of zero.
template <class T>
static bool backward_head(const Call& c, const Head& a, Matrix<T> k, Matrix<T> v, Matrix<T> dk, Matrix<T> dv, T* p,
                          T* dp) {
  const auto go = head_of<T>(c.in[0], a.b, a.h), q = head_of<T>(c.in[1], a.b, a.h), o = head_of<T>(c.in[6], a.b, a.h);
  const auto dq = head_of<T>(c.out[0], a.b, a.h);
  const int64_t e = c.in[3].shape[3];
  const T scale = T(c.attrs->f[0]), *lse = c.in[7].ptr<T>() + (a.b * a.q.shape[1] + a.h) * a.t;
  bool ok = true;
  for (int64_t first = 0; first < a.t && !c.stopped(); first += block) {
    const int64_t rows = a.t - first < block ? a.t - first : block, keys = a.keys_of(first + rows - 1);
    const T *g = go.data + first * go.stride, *x = q.data + first * q.stride;
    if (keys == 0) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < a.d; ++j) dq.data[(first + r) * dq.stride + j] = 0;
      continue;
    }
    ok = ok && gemm(false, true, rows, keys, a.d, scale, x, q.stride, k.data, k.stride, T(0), p, keys);
    ok = ok && gemm(false, true, rows, keys, e, T(1), g, go.stride, v.data, v.stride, T(0), dp, keys);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t n = a.keys_of(first + r);
      const T *gr = g + r * go.stride, *y = o.data + (first + r) * o.stride, shift = lse[first + r];
      T *prow = p + r * keys, *drow = dp + r * keys, delta = 0;
      mask_row(a, first + r, prow, n);
      for (int64_t j = 0; j < e; ++j) delta += gr[j] * y[j];
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) {
        const T w = vexp(prow[j] - shift);
        prow[j] = w;
        drow[j] = scale * w * (drow[j] - delta);
      }
      for (int64_t j = n; j < keys; ++j) prow[j] = drow[j] = 0;
    }
    ok = ok && gemm(true, false, keys, e, rows, T(1), p, keys, g, go.stride, T(1), dv.data, dv.stride);
    ok = ok && gemm(true, false, keys, a.d, rows, T(1), dp, keys, x, q.stride, T(1), dk.data, dk.stride);
    ok = ok && gemm(false, false, rows, a.d, keys, T(1), dp, keys, k.data, k.stride, T(0), dq.data + first * dq.stride,
                    dq.stride);
  }
  return ok;
}

template <class T>
static void clear(Matrix<T> m, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) m.data[i * m.stride + j] = 0;
}

template <class T>
static void backward(const Call& c) {
  const View &q = c.in[1], &k = c.in[2];
  const int64_t groups = k.shape[1], group = q.shape[1] / groups, pairs = q.shape[0] * groups, s = k.shape[2];
  const int64_t each = 2 * block * s;
  T* scratch = static_cast<T*>(c.lane->scratch(size_t(omp_get_max_threads() * each) * sizeof(T)));
  if (!scratch && s)
    return c.fail("attention: no memory for %lld scores\nwork on smaller tensors or batches, or free tensors",
                  (long long)each);
  bool ok = true;
#pragma omp parallel for schedule(static) if (pairs > 1)
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const int64_t b = pair / groups, g = pair % groups;
    const auto dk = head_of<T>(c.out[1], b, g), dv = head_of<T>(c.out[2], b, g);
    clear(dk, s, q.shape[3]);
    clear(dv, s, c.in[3].shape[3]);
    T* mine = scratch + omp_get_thread_num() * each;
    for (int64_t h = g * group; h < (g + 1) * group; ++h) {
      const Head head{q, k, c.in[4], c.in[5], b, h, q.shape[2], s, q.shape[3], c.attrs->i[0] == 1};
      if (!backward_head<T>(c, head, head_of<T>(k, b, g), head_of<T>(c.in[3], b, g), dk, dv, mine, mine + block * s))
        __atomic_store_n(&ok, false, __ATOMIC_RELAXED);
    }
  }
  if (!ok) c.fail("attention: oneDNN could not compute a matrix product");
}
// in: gradient of o, q, k, v, mask, lengths, o, log-sum-exp; out: gradients of q, k, v
void attention_masked_grad(const Call& c) { RILLE_FLOATS(c.in[1].dtype, backward<T>(c)); }

}  // namespace rille::kernels::RILLE_ISA
