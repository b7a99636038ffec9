// Attention of f16 and bf16 on tensor cores, for heads of 64 and 128 numbers, causal or not, with groups of heads.
// Separate kernels support masks and lengths (FlashAttention-2: Dao 2023). A block of four warps holds 64 rows, 16 per
// warp. The rows of the other operand are loaded in tiles, the next tile while one is processed. Gradients of queries
// and of keys are separate kernels: the scores are computed twice, and every sum is computed by one warp. attention.cu
// covers all other cases.
#include "kernels/cuda/tensor_core.h"

namespace rille::kernels::cuda {

#if defined(RILLE_CPU) || !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define RILLE_TENSOR_CORES 1
#endif

constexpr int block_rows = 64, block_threads = 128;
constexpr float log2_e = 1.44269504088896340736f;

struct Block { int b, h, first; };
DEVICE Block block_of(int heads, int length, bool last_first) {
  const int blocks = (length + block_rows - 1) / block_rows;
  const int pair = int(blockIdx.x) / blocks, block = int(blockIdx.x) % blocks;
  return {pair / heads, pair % heads, (last_first ? blocks - 1 - block : block) * block_rows};
}
template <class T> DEVICE T* head_of(const Strided& m, int b, int h) {
  return static_cast<T*>(m.data) + b * m.batch + h * m.head;
}
// The sum or the maximum of a row, whose elements four lanes hold.
template <class F> DEVICE float reduce_quad(float x) {
  x = F::of(x, from_lane(x, 1));
  return F::of(x, from_lane(x, 2));
}

// The mask and the number of keys for one pair of heads; without `masked` it does nothing and costs nothing. With it,
// scores are scaled before the mask is added, and compared before they become exponents of 2, because a mask may add
// -3e38 to hide a key.
template <class T, bool masked> struct KeyMask {
  const Byte* seen = nullptr;
  const T* added = nullptr;
  Long row = 0, column = 0;
  float scale = 1;
  int keys;                                        // number of keys of this batch entry
  __device__ __forceinline__ KeyMask(const Attention& a, int b, int h) : keys(a.s) {
    if (!masked) return;
    scale = float(a.scale);
    if (a.lengths && a.lengths[b] < keys) keys = a.lengths[b] < 0 ? 0 : int(a.lengths[b]);
    turn(a, b, h);
  }
  __device__ __forceinline__ void turn(const Attention& a, int b, int h) {
    if (!masked || a.mask_kind == 0) return;
    const Long at = b * a.mask_step[0] + h * a.mask_step[1];
    row = a.mask_step[2];
    column = a.mask_step[3];
    if (a.mask_kind == 1) seen = static_cast<const Byte*>(a.mask) + at;
    else added = static_cast<const T*>(a.mask) + at;
  }
  __device__ __forceinline__ float of(float score, int query, int key) const {
    if (!masked) return score;
    if (seen) return seen[query * row + key * column] ? score * scale : -INFINITY;
    return added ? score * scale + widen(added[query * row + key * column]) : score * scale;
  }
};

template <class T, int D, int N, bool masked> DEVICE void attend(const Attention& a) {
#ifdef RILLE_TENSOR_CORES
  constexpr int tile = N * 8;                     // keys per tile
  DYNAMIC_SHARED(T, shared);
  T *const q = shared, *const other = shared + block_rows * D;
  const Block me = block_of(a.heads, a.t, a.causal);
  const int key_head = me.h / (a.heads / a.groups), row = int(threadIdx.x) / 32 * 16, lane = int(threadIdx.x) % 32;
  const T *k = head_of<const T>(a.k, me.b, key_head), *v = head_of<const T>(a.v, me.b, key_head);
  const KeyMask<T, masked> mask(a, me.b, me.h);
  const int shift = a.s - a.t, last = me.first + block_rows - 1, keys_there = mask.keys;
  const int end = a.causal && last + 1 + shift < keys_there ? last + 1 + shift : keys_there;
  const int tiles = (end + tile - 1) / tile;
  const auto fetch = [&](int n) {
    fetch_tiles<D, tile, block_threads>(other, n, k, a.k.row, v, a.v.row, n * tile, keys_there);
  };
  load_rows<D, block_rows, block_threads>(q, head_of<const T>(a.q, me.b, me.h), a.q.row, me.first, a.t);
  fetch(0);
  float o[D / 8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
  const float factor = masked ? log2_e : float(a.scale) * log2_e;
  for (int n = 0; n < tiles; ++n) {
    await_tile(n, tiles, fetch);
    T *const keys = other + (n & 1) * 2 * tile * D, *const values = keys + tile * D;
    float s[N][4] = {};
    add_turned<D, N>(s, [&](unsigned (&x)[4], int c) { left_of<D>(x, q, row, c * 16); }, keys);
    // Hides the keys that a query does not see; whole tiles below the diagonal need no test.
    if (masked || n * tile + tile > a.s || (a.causal && n * tile + tile > me.first + row + 1 + shift)) {
#pragma unroll
      for (int i = 0; i < N; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int j = n * tile + i * 8 + lane % 4 * 2 + e % 2, query = me.first + row + lane / 4 + e / 2 * 8;
          if (j >= keys_there || (a.causal && j > query + shift)) s[i][e] = -INFINITY;
          else if (masked) s[i][e] = query < a.t ? mask.of(s[i][e], query, j) : 0.0f;
        }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {         // a lane has rows lane / 4 and lane / 4 + 8
      float row_max = largest[half];
#pragma unroll
      for (int i = 0; i < N; ++i) row_max = Most::of(Most::of(row_max, s[i][2 * half]), s[i][2 * half + 1]);
      row_max = reduce_quad<Most>(row_max);
      const float base = masked && row_max == -INFINITY ? 0.0f : row_max;    // -inf: the row has seen no key yet
      const float less = exp2_fast((largest[half] - base) * factor);
      float sum = 0;
#pragma unroll
      for (int i = 0; i < N; ++i)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) sum += s[i][e] = exp2_fast((s[i][e] - base) * factor);
      total[half] = total[half] * less + sum;
      largest[half] = row_max;
#pragma unroll
      for (int c = 0; c < D / 8; ++c) {
        o[c][2 * half] *= less;
        o[c][2 * half + 1] *= less;
      }
    }
    add_plain<D, N>(o, s, values);
    __syncthreads();
  }
  total[0] = reduce_quad<Plus>(total[0]);
  total[1] = reduce_quad<Plus>(total[1]);
  if (masked) {                                    // the loop may have had no tile
    wait_copies<0>();
    __syncthreads();
  }
  const auto share = [](float sum) { return masked && !(sum > 0) ? 0.0f : 1.0f / sum; };
  store_rows<D>(o, share(total[0]), share(total[1]), q, row, head_of<T>(a.o, me.b, me.h), a.o.row, me.first, a.t);
  if (lane % 4) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = me.first + row + lane / 4 + half * 8;
    if (query < a.t)
      static_cast<float*>(a.lse)[(Long(me.b) * a.heads + me.h) * a.t + query] =
          masked && !(total[half] > 0) ? INFINITY
          : (masked ? largest[half] : largest[half] * float(a.scale)) + logf(total[half]);
  }
#endif
}

// Replaces the score s by P = e^(s - log-sum-exp); `lse` is scaled by log2 e unless `masked`. Returns dS.
template <bool masked>
DEVICE float score_grad(float& s, float dp, float factor, float lse, float delta, float scale, bool sees) {
  s = !sees ? 0.0f : masked ? exp2_fast((s - lse) * log2_e) : exp2_fast(s * factor - lse);
  return scale * s * (dp - delta);
}

// dQ = dS K
template <class T, int D, int N, bool masked> DEVICE void grad_queries(const Attention& a) {
#ifdef RILLE_TENSOR_CORES
  constexpr int tile = N * 8;
  DYNAMIC_SHARED(T, shared);
  T *const q = shared, *const go = q + block_rows * D, *const other = go + block_rows * D;
  const Block me = block_of(a.heads, a.t, a.causal);
  const int key_head = me.h / (a.heads / a.groups), row = int(threadIdx.x) / 32 * 16, lane = int(threadIdx.x) % 32;
  const T *k = head_of<const T>(a.k, me.b, key_head), *v = head_of<const T>(a.v, me.b, key_head);
  const KeyMask<T, masked> mask(a, me.b, me.h);
  const int shift = a.s - a.t, last = me.first + block_rows - 1, keys_there = mask.keys;
  const int end = a.causal && last + 1 + shift < keys_there ? last + 1 + shift : keys_there;
  const int tiles = (end + tile - 1) / tile;
  const auto fetch = [&](int n) {
    fetch_tiles<D, tile, block_threads>(other, n, k, a.k.row, v, a.v.row, n * tile, keys_there);
  };
  load_rows<D, block_rows, block_threads>(q, head_of<const T>(a.q, me.b, me.h), a.q.row, me.first, a.t);
  load_rows<D, block_rows, block_threads>(go, head_of<const T>(a.go, me.b, me.h), a.go.row, me.first, a.t);
  fetch(0);
  float dq[D / 8][4] = {}, lse[2], delta[2];
  const float factor = float(a.scale) * log2_e;    // used if not masked
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = me.first + row + lane / 4 + half * 8;
    const Long at = (Long(me.b) * a.heads + me.h) * a.t + (query < a.t ? query : a.t - 1);
    lse[half] = static_cast<const float*>(a.lse)[at] * (masked ? 1.0f : log2_e);
    delta[half] = static_cast<const float*>(a.delta)[at];
  }
  for (int n = 0; n < tiles; ++n) {
    await_tile(n, tiles, fetch);
    T *const keys = other + (n & 1) * 2 * tile * D, *const values = keys + tile * D;
    float s[N][4] = {}, dp[N][4] = {};
    add_turned<D, N>(s, [&](unsigned (&x)[4], int c) { left_of<D>(x, q, row, c * 16); }, keys);
    add_turned<D, N>(dp, [&](unsigned (&x)[4], int c) { left_of<D>(x, go, row, c * 16); }, values);
    const auto take = [&](auto tested) {           // whole tiles below the diagonal need no test
#pragma unroll
      for (int i = 0; i < N; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          bool sees = true;
          if constexpr (decltype(tested)::value) {
            const int j = n * tile + i * 8 + lane % 4 * 2 + e % 2, query = me.first + row + lane / 4 + e / 2 * 8;
            sees = j < keys_there && (!a.causal || j <= query + shift) && (!masked || query < a.t);
            if (masked && sees) s[i][e] = mask.of(s[i][e], query, j);
          }
          dp[i][e] = score_grad<masked>(s[i][e], dp[i][e], factor, lse[e / 2], delta[e / 2], float(a.scale), sees);
        }
    };
    const bool whole = n * tile + tile <= keys_there && (!a.causal || n * tile + tile <= me.first + row + 1 + shift);
    if (masked || !whole) take(Count<1>());
    else take(Count<0>());
    add_plain<D, N>(dq, dp, keys);
    __syncthreads();
  }
  if (masked) {
    wait_copies<0>();
    __syncthreads();
  }
  store_rows<D>(dq, 1.0f, 1.0f, q, row, head_of<T>(a.dq, me.b, me.h), a.dq.row, me.first, a.t);
#endif
}

// dV = P' dO, dK = dS' Q. The block's rows are keys; the queries are loaded tile by tile.
template <class T, int D, int N, bool masked> DEVICE void grad_keys(const Attention& a) {
#ifdef RILLE_TENSOR_CORES
  constexpr int tile = N * 8;
  DYNAMIC_SHARED(T, shared);
  T *const k = shared, *const v = k + block_rows * D, *const other = v + block_rows * D;
  // Of each there are two tiles: while one is used, the next one is loaded.
  float *const lses = reinterpret_cast<float*>(other + 4 * tile * D), *const deltas = lses + 2 * tile;
  const Block me = block_of(a.groups, a.s, false);
  const int each = a.heads / a.groups, row = int(threadIdx.x) / 32 * 16, lane = int(threadIdx.x) % 32;
  const int shift = a.s - a.t, begin = a.causal && me.first > shift ? (me.first - shift) / tile : 0;
  KeyMask<T, masked> mask(a, me.b, me.h * each);
  const int keys_there = mask.keys;
  const int in_head = me.first < keys_there ? (a.t + tile - 1) / tile - begin : 0;
  const int tiles = in_head > 0 ? in_head * each : 0;
  const auto fetch = [&](int n) {
    const int h = me.h * each + n / in_head, first = (begin + n % in_head) * tile;
    fetch_tiles<D, tile, block_threads>(other, n, head_of<const T>(a.q, me.b, h), a.q.row,
                                        head_of<const T>(a.go, me.b, h), a.go.row, first, a.t);
    if (int(threadIdx.x) < tile) {
      const int query = first + int(threadIdx.x);
      const Long at = (Long(me.b) * a.heads + h) * a.t + (query < a.t ? query : a.t - 1);
      lses[(n & 1) * tile + int(threadIdx.x)] = static_cast<const float*>(a.lse)[at] * (masked ? 1.0f : log2_e);
      deltas[(n & 1) * tile + int(threadIdx.x)] = static_cast<const float*>(a.delta)[at];
    }
  };
  load_rows<D, block_rows, block_threads>(k, head_of<const T>(a.k, me.b, me.h), a.k.row, me.first, keys_there);
  load_rows<D, block_rows, block_threads>(v, head_of<const T>(a.v, me.b, me.h), a.v.row, me.first, keys_there);
  if (tiles) fetch(0);
  else end_copies();
  float dk[D / 8][4] = {}, dv[D / 8][4] = {};
  const float factor = float(a.scale) * log2_e;    // used if not masked
  for (int n = 0; n < tiles; ++n) {
    await_tile(n, tiles, fetch);
    const int first = (begin + n % in_head) * tile;
    if (masked) mask.turn(a, me.b, me.h * each + n / in_head);
    T *const queries = other + (n & 1) * 2 * tile * D, *const gradients = queries + tile * D;
    float s[N][4] = {}, dp[N][4] = {};
    add_turned<D, N>(s, [&](unsigned (&x)[4], int c) { left_of<D>(x, k, row, c * 16); }, queries);
    add_turned<D, N>(dp, [&](unsigned (&x)[4], int c) { left_of<D>(x, v, row, c * 16); }, gradients);
    const auto take = [&](auto tested) {
#pragma unroll
      for (int i = 0; i < N; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int column = i * 8 + lane % 4 * 2 + e % 2, at = (n & 1) * tile + column;
          bool sees = true;
          if constexpr (decltype(tested)::value) {
            const int query = first + column, j = me.first + row + lane / 4 + e / 2 * 8;
            sees = query < a.t && j < keys_there && (!a.causal || j <= query + shift);
            if (masked && sees) s[i][e] = mask.of(s[i][e], query, j);
          }
          dp[i][e] = score_grad<masked>(s[i][e], dp[i][e], factor, lses[at], deltas[at], float(a.scale), sees);
        }
    };
    const int last_key = me.first + row + 15;
    const bool whole = first + tile <= a.t && last_key < keys_there && (!a.causal || last_key <= first + shift);
    if (masked || !whole) take(Count<1>());
    else take(Count<0>());
    add_plain<D, N>(dv, s, gradients);
    add_plain<D, N>(dk, dp, queries);
    __syncthreads();
  }
  wait_copies<0>();
  __syncthreads();
  store_rows<D>(dk, 1.0f, 1.0f, k, row, head_of<T>(a.dk, me.b, me.h), a.dk.row, me.first, a.s);
  store_rows<D>(dv, 1.0f, 1.0f, v, row, head_of<T>(a.dv, me.b, me.h), a.dv.row, me.first, a.s);
#endif
}

#define TENSOR(d, n, name, T, kind, masked)                                                                           \
  ENTRY(attention_##kind##_##d##_##name, 128, GIVEN Attention a) { attend<T, d, 8, masked>(a); }                      \
  ENTRY(attention_##kind##_grad_queries_##d##_##name, 128, GIVEN Attention a) { grad_queries<T, d, n, masked>(a); }   \
  ENTRY(attention_##kind##_grad_keys_##d##_##name, 128, GIVEN Attention a) { grad_keys<T, d, n, masked>(a); }
#define BOTH(d, n, name, T)                                                                                           \
  TENSOR(d, n, name, T, tensor, false)                                                                                \
  TENSOR(d, n, name, T, tensor_masked, true)
BOTH(64, 8, bf16, Brain)
BOTH(64, 8, f16, Half)
BOTH(128, 4, bf16, Brain)
BOTH(128, 4, f16, Half)

}  // namespace rille::kernels::cuda
