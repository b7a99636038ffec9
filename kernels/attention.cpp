// One (batch, head) pair on one thread, in blocks of 64 queries against all the keys they see: the scores of
// a block stay in cache, nothing of size t x s is kept, and the backward pass makes the probabilities again
// from the log-sum-exp (FlashAttention's trade, Dao et al. 2022). Each pair's sums run in a fixed order: bits
// do not depend on the threads.
#include "kernels/attention.hpp"

#include <omp.h>

#include "kernels/gemm.hpp"
#include "kernels/nest.hpp"
#include "kernels/rows.hpp"

namespace rille::kernels::RILLE_ISA {

static constexpr int64_t block = 64;

template <class T> struct Matrix { T* data; int64_t stride; };

template <class T> static Matrix<T> pair_of(const View& v, int64_t pair) {
  const int64_t h = v.shape[1];
  return {v.ptr<T>() + pair / h * v.strides[0] + pair % h * v.strides[1], v.strides[2]};
}

// How many keys query i sees.
static inline int64_t keys_of(int64_t i, int64_t t, int64_t s, bool causal) {
  const int64_t n = causal ? i + 1 + s - t : s;
  return n < 0 ? 0 : n > s ? s : n;
}

template <class T>
static void forward_pair(const Call& c, int64_t pair, T* scores) {
  const auto q = pair_of<T>(c.in[0], pair), k = pair_of<T>(c.in[1], pair), v = pair_of<T>(c.in[2], pair);
  const auto o = pair_of<T>(c.out[0], pair);
  const int64_t t = c.in[0].shape[2], s = c.in[1].shape[2], d = c.in[0].shape[3], dv = c.in[2].shape[3];
  const bool causal = c.attrs->i[0] == 1;
  T* lse = c.out[1].ptr<T>() + pair * t;
  for (int64_t first = 0; first < t; first += block) {
    const int64_t rows = t - first < block ? t - first : block, keys = keys_of(first + rows - 1, t, s, causal);
    if (!gemm(false, true, rows, keys, d, T(c.attrs->f[0]), q.data + first * q.stride, q.stride, k.data, k.stride, T(0),
              scores, keys)) return c.fail("attention: oneDNN refused a product");
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t n = keys_of(first + r, t, s, causal);
      T* row = scores + r * keys;
      const T m = row_max(row, n), sum = row_exp(row, row, n, m), scale = n ? T(1) / sum : T(0);
      for (int64_t j = 0; j < n; ++j) row[j] *= scale;
      for (int64_t j = n; j < keys; ++j) row[j] = 0;
      lse[first + r] = m + vlog(sum);
    }
    if (!gemm(false, false, rows, dv, keys, T(1), scores, keys, v.data, v.stride, T(0),
              o.data + first * o.stride, o.stride))
      return c.fail("attention: oneDNN refused a product");
  }
}

// Pairs shared out to the threads, each with its own part of the scratch memory.
template <class T, class F>
static void for_pairs(const Call& c, const View& q, int64_t scratch_each, const F& f) {
  const int64_t pairs = q.shape[0] * q.shape[1], threads = omp_get_max_threads();
  T* scratch = static_cast<T*>(c.lane->scratch(size_t(threads * scratch_each) * sizeof(T)));
  if (!scratch) return c.fail("attention: no memory for %lld scores", (long long)scratch_each);
#pragma omp parallel for schedule(static) if (pairs > 1)
  for (int64_t pair = 0; pair < pairs; ++pair) f(pair, scratch + omp_get_thread_num() * scratch_each);
}

void attention(const Call& c) {
  const int64_t s = c.in[1].shape[2];
  RILLE_FLOATS(c.in[0].dtype, for_pairs<T>(c, c.in[0], block * s, [&](int64_t pair, T* scores) {
                 forward_pair<T>(c, pair, scores);
               }));
}

// P = exp(scale q k' - lse); dV = P' dO; dP = dO V'; dS = scale P (dP - rowsum(dO O)); dQ = dS K; dK = dS' Q.
// From the last block of queries to the first: the last one sees every key, so it writes dK and dV, and the others add.
template <class T>
static void backward_pair(const Call& c, int64_t pair, T* scratch) {
  const auto go = pair_of<T>(c.in[0], pair), q = pair_of<T>(c.in[1], pair), k = pair_of<T>(c.in[2], pair);
  const auto v = pair_of<T>(c.in[3], pair), o = pair_of<T>(c.in[4], pair);
  const auto dq = pair_of<T>(c.out[0], pair), dk = pair_of<T>(c.out[1], pair), dv = pair_of<T>(c.out[2], pair);
  const int64_t t = c.in[1].shape[2], s = c.in[2].shape[2], d = c.in[1].shape[3], w = c.in[3].shape[3];
  const bool causal = c.attrs->i[0] == 1;
  const T scale = T(c.attrs->f[0]), *lse = c.in[5].ptr<T>() + pair * t;
  T *p = scratch, *dp = scratch + block * s;
  bool ok = true;
  for (int64_t first = (t - 1) / block * block; first >= 0; first -= block) {
    const int64_t rows = t - first < block ? t - first : block, keys = keys_of(first + rows - 1, t, s, causal);
    const T* go_block = go.data + first * go.stride;
    const T beta = first + rows == t ? T(0) : T(1);
    ok = ok && gemm(false, true, rows, keys, d, scale, q.data + first * q.stride, q.stride, k.data, k.stride,
                    T(0), p, keys);
    ok = ok && gemm(false, true, rows, keys, w, T(1), go_block, go.stride, v.data, v.stride, T(0), dp, keys);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t n = keys_of(first + r, t, s, causal);
      const T *g = go_block + r * go.stride, *y = o.data + (first + r) * o.stride, shift = lse[first + r];
      T *prow = p + r * keys, *drow = dp + r * keys, delta = 0;
#pragma omp simd reduction(+ : delta)
      for (int64_t j = 0; j < w; ++j) delta += g[j] * y[j];
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) {
        const T e = vexp(prow[j] - shift);
        prow[j] = e;
        drow[j] = scale * e * (drow[j] - delta);
      }
      for (int64_t j = n; j < keys; ++j) prow[j] = drow[j] = 0;
    }
    ok = ok && gemm(true, false, keys, w, rows, T(1), p, keys, go_block, go.stride, beta, dv.data, dv.stride);
    ok = ok && gemm(true, false, keys, d, rows, T(1), dp, keys, q.data + first * q.stride, q.stride, beta,
                    dk.data, dk.stride);
    ok = ok && gemm(false, false, rows, d, keys, T(1), dp, keys, k.data, k.stride, T(0),
                    dq.data + first * dq.stride, dq.stride);
  }
  if (!ok) c.fail("attention: oneDNN refused a product");
}

void attention_grad(const Call& c) {
  const int64_t s = c.in[2].shape[2];
  RILLE_FLOATS(c.in[1].dtype, for_pairs<T>(c, c.in[1], 2 * block * s, [&](int64_t pair, T* scratch) {
                 backward_pair<T>(c, pair, scratch);
               }));
}

}  // namespace rille::kernels::RILLE_ISA
