// Scaled dot-product attention for every type, mask, length and group of heads, without tensor cores. Scores are never
// stored (Dao et al., FlashAttention, 2022): a warp keeps four rows of its own in shared memory and takes the rows of
// the other operand 32 at a time, one per lane. Sums are f32 (f64). Gradients of queries and of keys are separate
// kernels, so that one warp computes each sum in a fixed order.
#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

constexpr int own = 4;                  // rows per warp
constexpr int side = 32, strip = 64;    // rows and columns of the other operand in shared memory at once

template <class C> struct Tile { C at[side][strip + 1]; };   // + 1: a column lies in different banks

// Rows [first, first + 32) and columns [column, column + 64) of a matrix, zero outside it. All threads must call it.
template <class T, class C>
DEVICE void load_tile(Tile<C>& tile, const T* from, Long step, int first, int rows, int column, int columns) {
  __syncthreads();
  const int thread = int(threadIdx.y * 32 + threadIdx.x), all = int(blockDim.y) * 32;
  for (int i = thread; i < side * strip; i += all) {
    const int r = i / strip, c = i % strip;
    const bool inside = first + r < rows && column + c < columns;
    tile.at[r][c] = inside ? C(widen(from[Long(first + r) * step + column + c])) : C(0);
  }
  __syncthreads();
}

// Loads the rows of this block into shared memory; rows beyond `rows` are zero.
template <class T, class C>
DEVICE void load_own(C* to, const T* from, Long step, int first, int rows, int columns) {
  for (int r = int(threadIdx.y) * own; r < int(threadIdx.y) * own + own; ++r)
    for (int c = int(threadIdx.x); c < columns; c += 32)
      to[r * columns + c] = first + r < rows ? C(widen(from[Long(first + r) * step + c])) : C(0);
}

// dot[r] += own row r times this lane's row of the other matrix.
template <class T, class C>
DEVICE void dots(C (&dot)[own], const C* mine, Tile<C>& tile, const T* from, Long step, int first, int rows,
                 int columns) {
  for (int column = 0; column < columns; column += strip) {
    load_tile(tile, from, step, first, rows, column, columns);
    const int n = columns - column < strip ? columns - column : strip;
    for (int c = 0; c < n; ++c) {
      const C x = tile.at[threadIdx.x][c];
#pragma unroll
      for (int r = 0; r < own; ++r) dot[r] += mine[(int(threadIdx.y) * own + r) * columns + column + c] * x;
    }
  }
}

// sum row r = scale[r] * sum row r + weights of row r times the other matrix.
template <class T, class C>
DEVICE void add_products(C* sum, const C (&scale)[own], const C* weights, Tile<C>& tile, const T* from, Long step,
                         int first, int rows, int columns) {
  for (int column = 0; column < columns; column += strip) {
    load_tile(tile, from, step, first, rows, column, columns);
    for (int c = int(threadIdx.x); c < strip && column + c < columns; c += 32) {
      C acc[own];
      C* const to = sum + Long(threadIdx.y) * own * columns + column + c;
#pragma unroll
      for (int r = 0; r < own; ++r) acc[r] = to[r * columns] * scale[r];
      for (int j = 0; j < side; ++j) {
        const C x = tile.at[j][c];
#pragma unroll
        for (int r = 0; r < own; ++r) acc[r] += weights[(int(threadIdx.y) * own + r) * (side + 1) + j] * x;
      }
#pragma unroll
      for (int r = 0; r < own; ++r) to[r * columns] = acc[r];
    }
  }
}

template <class T> DEVICE const T* head_of(const Strided& m, int b, int h) {
  return static_cast<const T*>(m.data) + b * m.batch + h * m.head;
}
template <class T> DEVICE T* own_head(const Strided& m, int b, int h) {
  return static_cast<T*>(m.data) + b * m.batch + h * m.head;
}

// The number of leading keys that query i may see.
DEVICE int keys_of(const Attention& a, int b, int i) {
  Long n = a.causal ? Long(i) + 1 + a.s - a.t : a.s;
  if (a.lengths && n > a.lengths[b]) n = a.lengths[b];
  return n < 0 || i >= a.t ? 0 : n > a.s ? a.s : int(n);
}

// The score of query i and key j after the mask; -inf if the key is hidden.
template <class T, class C> DEVICE C masked(const Attention& a, int b, int h, int i, int j, C score) {
  if (a.mask_kind == 0) return score;
  const Long at = b * a.mask_step[0] + h * a.mask_step[1] + i * a.mask_step[2] + j * a.mask_step[3];
  if (a.mask_kind == 1) return static_cast<const Byte*>(a.mask)[at] ? score : C(-INFINITY);
  return score + widen(static_cast<const T*>(a.mask)[at]);
}

struct Mine { int b, h, first; };
// last_first: blocks of the last rows come first, because with a causal mask they have the most work.
DEVICE Mine place_of(int heads, int length, bool last_first) {
  const int rows = int(blockDim.y) * own, blocks = (length + rows - 1) / rows;
  const int pair = int(blockIdx.x) / blocks, block = int(blockIdx.x) % blocks;
  return {pair / heads, pair % heads, (last_first ? blocks - 1 - block : block) * rows};
}

template <class T> DEVICE void attend(const Attention& a) {
  typedef Wide<T> C;
  DYNAMIC_SHARED(C, shared);
  const int rows = int(blockDim.y) * own;
  Tile<C>& tile = *reinterpret_cast<Tile<C>*>(shared);
  C *q = shared + side * (strip + 1), *o = q + rows * a.d, *p = o + rows * a.e;
  const Mine me = place_of(a.heads, a.t, a.causal);
  const int key_head = me.h / (a.heads / a.groups), warp = int(threadIdx.y) * own;
  load_own(q, head_of<T>(a.q, me.b, me.h), a.q.row, me.first, a.t, a.d);
  for (int i = warp * a.e + int(threadIdx.x); i < (warp + own) * a.e; i += 32) o[i] = C(0);
  const int end = keys_of(a, me.b, (me.first + rows < a.t ? me.first + rows : a.t) - 1);
  C largest[own], total[own], factor[own];
#pragma unroll
  for (int r = 0; r < own; ++r) {
    largest[r] = C(-INFINITY);
    total[r] = C(0);
  }
  for (int first = 0; first < end; first += side) {
    C s[own] = {};
    dots(s, q, tile, head_of<T>(a.k, me.b, key_head), a.k.row, first, a.s, a.d);
#pragma unroll
    for (int r = 0; r < own; ++r) {
      const int i = me.first + warp + r, j = first + int(threadIdx.x);
      const bool sees = j < keys_of(a, me.b, i);
      const C x = sees ? masked<T>(a, me.b, me.h, i, j, s[r] * C(a.scale)) : C(-INFINITY);
      C most = x;
#pragma unroll
      for (int d = 16; d; d /= 2) most = Most::of(most, from_lane(most, d));
      most = Most::of(largest[r], most);
      const C w = x > C(-INFINITY) ? fast_exp(x - most) : x != x ? x : C(0);
      C sum = w;
#pragma unroll
      for (int d = 16; d; d /= 2) sum += from_lane(sum, d);
      factor[r] = largest[r] == most ? C(1) : fast_exp(largest[r] - most);
      total[r] = total[r] * factor[r] + sum;
      largest[r] = most;
      p[(warp + r) * (side + 1) + threadIdx.x] = w;
    }
    add_products(o, factor, p, tile, head_of<T>(a.v, me.b, key_head), a.v.row, first, a.s, a.e);
  }
#pragma unroll
  for (int r = 0; r < own; ++r) {
    const int i = me.first + warp + r;
    if (i >= a.t) continue;
    const bool blind = total[r] == C(0);
    T* out = own_head<T>(a.o, me.b, me.h) + i * a.o.row;
    for (int c = int(threadIdx.x); c < a.e; c += 32)
      out[c] = narrow<T>(blind ? C(0) : o[(warp + r) * a.e + c] / total[r]);
    if (threadIdx.x == 0)
      static_cast<C*>(a.lse)[(Long(me.b) * a.heads + me.h) * a.t + i] =
          blind ? C(INFINITY) : largest[r] + log(total[r]);
  }
}

DEVICE Long quotient(Long a, Long b) { return (a | b) >> 31 ? a / b : Long(unsigned(a) / unsigned(b)); }
// delta = sum of dO * O for each query. `lanes` of a warp have a query, in packs if its rows allow; 32 / lanes queries
// at once.
template <class T> DEVICE void attention_delta(const Attention& a, int lanes, int packed) {
  typedef Wide<T> C;
  const Long all = Long(a.batch) * a.heads * a.t, at_once = 32 / lanes;
  const int lane = int(threadIdx.x) % lanes;
  each_row((all + at_once - 1) / at_once, [&](Long some) {
    const Long row = some * at_once + int(threadIdx.x) / lanes;
    C sum = 0;
    if (row < all) {
      const Long pair = quotient(row, a.t), b = quotient(pair, a.heads), i = row - pair * a.t, h = pair - b * a.heads;
      const T *g = head_of<T>(a.go, int(b), int(h)) + i * a.go.row, *o = head_of<T>(a.o, int(b), int(h)) + i * a.o.row;
      constexpr int V = pack_of(sizeof(T));
      if (packed) {
        for (int c = lane * V; c < a.e; c += lanes * V) {
          C x[V], y[V];
          load_wide<T, V>(g + c, x);
          load_wide<T, V>(o + c, y);
#pragma unroll
          for (int v = 0; v < V; ++v) sum += x[v] * y[v];
        }
      } else {
        for (int c = lane; c < a.e; c += lanes) sum += widen(g[c]) * widen(o[c]);
      }
    }
    for (int d = lanes / 2; d; d /= 2) sum += from_lane(sum, d);
    if (lane == 0 && row < all) static_cast<C*>(a.delta)[row] = sum;
  });
}

// The probability of key j for query i, recomputed from the log-sum-exp.
template <class T, class C> DEVICE C probability(const Attention& a, int b, int h, int i, int j, C dot, C lse) {
  if (j >= keys_of(a, b, i)) return C(0);
  return exp(masked<T>(a, b, h, i, j, dot * C(a.scale)) - lse);
}

// dQ = scale (P (dO V' - delta)) K
template <class T> DEVICE void attention_grad_queries(const Attention& a) {
  typedef Wide<T> C;
  DYNAMIC_SHARED(C, shared);
  const int rows = int(blockDim.y) * own;
  Tile<C>& tile = *reinterpret_cast<Tile<C>*>(shared);
  C *q = shared + side * (strip + 1), *go = q + rows * a.d, *dq = go + rows * a.e, *p = dq + rows * a.d;
  const Mine me = place_of(a.heads, a.t, a.causal);
  const int key_head = me.h / (a.heads / a.groups), warp = int(threadIdx.y) * own;
  load_own(q, head_of<T>(a.q, me.b, me.h), a.q.row, me.first, a.t, a.d);
  load_own(go, head_of<T>(a.go, me.b, me.h), a.go.row, me.first, a.t, a.e);
  for (int i = warp * a.d + int(threadIdx.x); i < (warp + own) * a.d; i += 32) dq[i] = C(0);
  const int end = keys_of(a, me.b, (me.first + rows < a.t ? me.first + rows : a.t) - 1);
  C lse[own], delta[own], one[own];
#pragma unroll
  for (int r = 0; r < own; ++r) {
    const int i = me.first + warp + r;
    const Long at = (Long(me.b) * a.heads + me.h) * a.t + (i < a.t ? i : a.t - 1);
    lse[r] = static_cast<const C*>(a.lse)[at];
    delta[r] = static_cast<const C*>(a.delta)[at];
    one[r] = C(1);
  }
  for (int first = 0; first < end; first += side) {
    C s[own] = {}, dp[own] = {};
    dots(s, q, tile, head_of<T>(a.k, me.b, key_head), a.k.row, first, a.s, a.d);
    dots(dp, go, tile, head_of<T>(a.v, me.b, key_head), a.v.row, first, a.s, a.e);
#pragma unroll
    for (int r = 0; r < own; ++r) {
      const C w = probability<T>(a, me.b, me.h, me.first + warp + r, first + int(threadIdx.x), s[r], lse[r]);
      p[(warp + r) * (side + 1) + threadIdx.x] = C(a.scale) * w * (dp[r] - delta[r]);
    }
    add_products(dq, one, p, tile, head_of<T>(a.k, me.b, key_head), a.k.row, first, a.s, a.d);
  }
  __syncwarp();                                   // without a visible key no call above has synchronized
  for (int r = 0; r < own; ++r) {
    const int i = me.first + warp + r;
    if (i >= a.t) continue;
    T* out = own_head<T>(a.dq, me.b, me.h) + i * a.dq.row;
    for (int c = int(threadIdx.x); c < a.d; c += 32) out[c] = narrow<T>(dq[(warp + r) * a.d + c]);
  }
}

// dV = P' dO, dK = scale (P (dO V' - delta))' Q, for the query heads of a group one after another.
template <class T> DEVICE void attention_grad_keys(const Attention& a) {
  typedef Wide<T> C;
  DYNAMIC_SHARED(C, shared);
  const int rows = int(blockDim.y) * own;
  Tile<C>& tile = *reinterpret_cast<Tile<C>*>(shared);
  C *k = shared + side * (strip + 1), *v = k + rows * a.d, *dk = v + rows * a.e, *dv = dk + rows * a.d;
  C* p = dv + rows * a.e;
  const Mine me = place_of(a.groups, a.s, false);
  const int each = a.heads / a.groups, warp = int(threadIdx.y) * own;
  load_own(k, head_of<T>(a.k, me.b, me.h), a.k.row, me.first, a.s, a.d);
  load_own(v, head_of<T>(a.v, me.b, me.h), a.v.row, me.first, a.s, a.e);
  for (int i = warp * a.d + int(threadIdx.x); i < (warp + own) * a.d; i += 32) dk[i] = C(0);
  for (int i = warp * a.e + int(threadIdx.x); i < (warp + own) * a.e; i += 32) dv[i] = C(0);
  // Starts at the tile with the first query that sees one of these keys.
  const int begin = a.causal && me.first > a.s - a.t ? (me.first - (a.s - a.t)) / side * side : 0;
  const C one[own] = {C(1), C(1), C(1), C(1)};
  for (int h = me.h * each; h < (me.h + 1) * each; ++h) {
    for (int first = begin; first < a.t; first += side) {
      const int i = first + int(threadIdx.x);
      const Long at = (Long(me.b) * a.heads + h) * a.t + (i < a.t ? i : a.t - 1);
      const C lse = static_cast<const C*>(a.lse)[at], delta = static_cast<const C*>(a.delta)[at];
      C s[own] = {}, dp[own] = {}, w[own];
      dots(s, k, tile, head_of<T>(a.q, me.b, h), a.q.row, first, a.t, a.d);
      dots(dp, v, tile, head_of<T>(a.go, me.b, h), a.go.row, first, a.t, a.e);
#pragma unroll
      for (int r = 0; r < own; ++r) {
        w[r] = probability<T>(a, me.b, h, i, me.first + warp + r, s[r], lse);
        p[(warp + r) * (side + 1) + threadIdx.x] = w[r];
      }
      add_products(dv, one, p, tile, head_of<T>(a.go, me.b, h), a.go.row, first, a.t, a.e);
      __syncwarp();
#pragma unroll
      for (int r = 0; r < own; ++r) p[(warp + r) * (side + 1) + threadIdx.x] = C(a.scale) * w[r] * (dp[r] - delta);
      add_products(dk, one, p, tile, head_of<T>(a.q, me.b, h), a.q.row, first, a.t, a.d);
    }
  }
  __syncwarp();
  for (int r = 0; r < own; ++r) {
    const int j = me.first + warp + r;
    if (j >= a.s) continue;
    T* to_k = own_head<T>(a.dk, me.b, me.h) + j * a.dk.row;
    T* to_v = own_head<T>(a.dv, me.b, me.h) + j * a.dv.row;
    for (int c = int(threadIdx.x); c < a.d; c += 32) to_k[c] = narrow<T>(dk[(warp + r) * a.d + c]);
    for (int c = int(threadIdx.x); c < a.e; c += 32) to_v[c] = narrow<T>(dv[(warp + r) * a.e + c]);
  }
}

#define ATTENTION(op, name, T)                                                                                \
  ENTRY(attention_##name, 256, GIVEN Attention a) { attend<T>(a); }                                           \
  ENTRY(attention_delta_##name, 256, GIVEN Attention a, int lanes, int packed) {                              \
    attention_delta<T>(a, lanes, packed);                                                                     \
  }                                                                                                           \
  ENTRY(attention_grad_queries_##name, 256, GIVEN Attention a) { attention_grad_queries<T>(a); }              \
  ENTRY(attention_grad_keys_##name, 256, GIVEN Attention a) { attention_grad_keys<T>(a); }
FOR_FLOATS(ATTENTION, attention)

}  // namespace rille::kernels::cuda
