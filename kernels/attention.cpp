// Scaled dot-product attention on views [b, h, t, d] whose last stride is 1. Other strides are free, so slices of one
// fused projection are read in place. attrs.f[0]: scale; attrs.i[0]: 1 for causal (query i sees keys <= i + s - t).
//
// One thread computes one (batch, head) pair, in blocks of 64 queries against all keys that they see. The scores of a
// block stay in the cache, nothing of size t x s is stored, and the backward pass recomputes the probabilities from the
// log-sum-exp (as in FlashAttention, Dao et al. 2022). The sums of a pair run in a fixed order, so the bits do not
// depend on the number of threads.
//
// Queries and keys are copied as f32 (f64) into tiles of 64 rows, and scores are stored as 64 x 64 tiles, so that the
// products of tiles run in the first-level cache. In a tile on the diagonal only the visible part is computed, four
// rows at a time.
#include <omp.h>

#include "kernels/gemm.hpp"
#include "kernels/nest.hpp"
#include "kernels/rows.hpp"
#include "kernels/tiles.hpp"

namespace rille::kernels::RILLE_ISA {

static constexpr int64_t block = 64, tile = block * block;
static constexpr int64_t few = 16;  // below this many queries, transposing the keys costs more than it saves

static Rows rows_of(const View& v, int64_t pair) {
  const int64_t h = v.shape[1], at = pair / h * v.strides[0] + pair % h * v.strides[1];
  return {v.ptr<char>() + at * int64_t(size_bytes(v.dtype)), v.dtype, v.strides[2], v.shape[3]};
}

// rounds up to whole vectors for every type and instruction set
static inline int64_t up16(int64_t n) { return (n + 15) / 16 * 16; }
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// The number of keys that query i sees.
static inline int64_t keys_of(int64_t i, int64_t t, int64_t s, bool causal) {
  const int64_t n = causal ? i + 1 + s - t : s;
  return n < 0 ? 0 : n > s ? s : n;
}

// A block of `rows` queries from `first` on; query r sees the first of(r) keys.
struct Seen {
  int64_t first, rows, t, s;
  bool causal;
  int64_t of(int64_t r) const { return keys_of(first + r, t, s, causal); }
  int64_t of_four(int64_t r) const { return of(least(r + 3, rows - 1)); }
  int64_t all() const { return of(rows - 1); }
  // The index in this block of the first query that sees key j.
  int64_t who_sees(int64_t j) const {
    const int64_t i = causal ? j - (s - t) - first : 0;
    return i < 0 ? 0 : least(i, rows);
  }
};

// scores = a times the keys. a has row stride `width` and `depth` columns; `turned` holds the keys as transposed tiles.
// Within a tile only the part that each group of four rows sees is computed.
template <class T>
static void scores_of(const Seen& seen, const T* a, int64_t width, int64_t depth, const T* turned, T* scores) {
  for (int64_t r = 0; r < seen.rows; r += 4)
    for (int64_t from = 0, n = seen.of_four(r); from < n; from += block)
      product_rows<T, false>({a + r * width, width, 1}, turned + from * width, block, scores + from * block + r * block,
                             block, least(block, n - from), depth);
}

// o = weights times the values, whose rows have `width` elements.
template <class T>
static void weighted(const Seen& seen, const T* weights, const T* values, int64_t width, T* o) {
  for (int64_t r = 0; r < seen.rows; r += 4) {
    const int64_t n = seen.of_four(r);
    for (int64_t from = 0; from == 0 || from < n; from += block)
      product_rows({weights + from * block + r * block, block, 1}, values + from * width, width, o + r * width, width,
                   width, least(block, n - from), from > 0);
  }
}

// o = (or, with `adds`, +=) transposed weights times x, whose rows have `width` elements: the gradient per key.
template <class T>
static void shared_out(const Seen& seen, const T* weights, const T* x, int64_t width, T* o, bool adds) {
  for (int64_t j = 0, n = adds ? seen.all() : seen.s; j < n; j += 4) {
    const int64_t who = seen.who_sees(j);
    product_rows({weights + j / block * tile + who * block + j % block, 1, block}, x + who * width, width,
                 o + j * width, width, width, seen.rows - who, adds);
  }
}

// Replaces scores by weights that are not yet divided by their sums. Keys that a query does not see, but another query
// of the same group of four sees, get weight zero. Works on 16 elements at a time, a compile-time constant, because
// rows are too short for loops with remainders.
template <class T>
static void softmax_rows(const Seen& seen, T* scores, T* sums, T* lse) {
  T high[block];
  for (int64_t r = 0; r < seen.rows; ++r) {
    const int64_t n = seen.of(r), end = up16(seen.of_four(r / 4 * 4));
    T *row = scores + r * block, most[16], sum[16] = {};
    for (int j = 0; j < 16; ++j) most[j] = -T(__builtin_inff());
    for (int64_t from = 0; from < end; from += 16) {
      const T* x = row + from / block * tile + from % block;
      const int valid = int(least(16, n - from));
#pragma omp simd
      for (int j = 0; j < 16; ++j) most[j] = j < valid && x[j] > most[j] ? x[j] : most[j];
    }
    const T m = row_max(most, 16);
    for (int64_t from = 0; from < end; from += 16) {
      T* x = row + from / block * tile + from % block;
      const int valid = int(least(16, n - from));
#pragma omp simd
      for (int j = 0; j < 16; ++j) {
        const T e = vexp(x[j] - m), y = j < valid ? e : T(0);
        x[j] = y;
        sum[j] += y;
      }
    }
    T all = 0;
#pragma omp simd reduction(+ : all)
    for (int j = 0; j < 16; ++j) all += sum[j];
    sums[r] = all;
    high[r] = m;
  }
#pragma omp simd
  for (int64_t r = 0; r < seen.rows; ++r) {
    lse[r] = high[r] + vlog(sums[r]);
    sums[r] = sums[r] == T(0) ? T(0) : T(1) / sums[r];
  }
}

// Divides a thread's scratch memory into parts; if memory is null, it only counts the elements needed.
template <class T>
struct Parts {
  T* memory;
  int64_t used = 0;
  T* take(int64_t n) {
    T* mine = memory ? memory + used : nullptr;
    used += up16(n);
    return mine;
  }
};

template <class T>
struct Forward {
  T *q, *turned, *k, *v, *scores, *o, *sums;
  int64_t size;
  Forward(T* memory, int64_t s, int64_t d, int64_t w) {
    const int64_t tiles = (s + block - 1) / block * block;
    Parts<T> from{memory};
    q = from.take(block * d), k = from.take(block * d), turned = from.take(tiles * d), v = from.take(tiles * w);
    scores = from.take(tiles * block), o = from.take(block * w), sums = from.take(block), size = from.used;
  }
};

// Loads keys or values as transposed tiles. `rows` is a buffer for one tile.
template <class T>
static void turn_rows(const Rows& from, int64_t s, T* rows, int64_t width, T* turned) {
  for (int64_t first = 0; first < s; first += block) {
    load_rows(from.from(first), least(block, s - first), block, rows, width);
    turn(rows, width, width, block, turned + first * width);
  }
}

template <class T>
static void forward_pair(const Call& c, int64_t pair, T* memory) {
  const int64_t t = c.in[0].shape[2], s = c.in[1].shape[2], d = c.in[0].shape[3];
  const int64_t deep = Lanes<T>::up(d), wide = Lanes<T>::up(c.in[2].shape[3]);
  const Rows q = rows_of(c.in[0], pair), o = rows_of(c.out[0], pair);
  const Forward<T> at(memory, s, deep, wide);
  turn_rows(rows_of(c.in[1], pair), s, at.k, deep, at.turned);
  load_rows(rows_of(c.in[2], pair), s, s, at.v, wide);
  for (int64_t first = 0; first < t && !c.stopped(); first += block) {
    const Seen seen{first, least(block, t - first), t, s, c.attrs->i[0] == 1};
    load_rows(q.from(first), seen.rows, block, at.q, deep);
    for (int64_t i = 0; i < seen.rows * deep; ++i) at.q[i] *= T(c.attrs->f[0]);
    scores_of(seen, at.q, deep, d, at.turned, at.scores);
    softmax_rows(seen, at.scores, at.sums, c.out[1].ptr<T>() + pair * t + first);
    weighted(seen, at.scores, at.v, wide, at.o);
    for (int64_t r = 0; r < seen.rows; ++r) {
      const T scale = at.sums[r];
      for (int64_t j = 0; j < wide; ++j) at.o[r * wide + j] *= scale;
    }
    store_rows(at.o, wide, seen.rows, o.from(first));
  }
}

// Distributes the (batch, head) pairs over the threads. Each thread has its own part of the scratch memory.
template <class T, class F>
static void for_pairs(const Call& c, const View& q, int64_t scratch_each, const F& f) {
  const int64_t pairs = q.shape[0] * q.shape[1], threads = omp_get_max_threads();
  T* scratch = static_cast<T*>(c.lane->scratch(size_t(threads * scratch_each) * sizeof(T)));
  if (!scratch)
    return c.fail("attention: no memory for %lld scores\nwork on smaller tensors or batches, or free tensors",
                  (long long)scratch_each);
#pragma omp parallel for schedule(static) if (pairs > 1)
  for (int64_t pair = 0; pair < pairs; ++pair)
    if (!c.stopped()) f(pair, scratch + omp_get_thread_num() * scratch_each);
}

// Attention for few queries: reads keys and values once, in place, without tiles.
template <class T>
static void few_queries(const Call& c, int64_t pair, T* scores) {
  const Rows q = rows_of(c.in[0], pair), k = rows_of(c.in[1], pair), v = rows_of(c.in[2], pair);
  const Rows o = rows_of(c.out[0], pair);
  const int64_t t = c.in[0].shape[2], s = c.in[1].shape[2];
  const auto at = [](const Rows& m) { return reinterpret_cast<T*>(m.data); };
  if (!gemm(false, true, t, s, q.columns, T(c.attrs->f[0]), at(q), q.stride, at(k), k.stride, T(0), scores, s))
    return c.fail("attention: oneDNN could not compute a matrix product");
  for (int64_t r = 0; r < t; ++r) {
    const int64_t n = keys_of(r, t, s, c.attrs->i[0] == 1);
    T* row = scores + r * s;
    const T m = row_max(row, n), sum = row_exp(row, row, n, m), scale = n ? T(1) / sum : T(0);
    for (int64_t j = 0; j < n; ++j) row[j] *= scale;
    for (int64_t j = n; j < s; ++j) row[j] = 0;
    c.out[1].ptr<T>()[pair * t + r] = m + vlog(sum);
  }
  if (!gemm(false, false, t, v.columns, s, T(1), scores, s, at(v), v.stride, T(0), at(o), o.stride))
    return c.fail("attention: oneDNN could not compute a matrix product");
}
static void attention_few(const Call& c) {
  RILLE_FLOATS(c.in[0].dtype, for_pairs<T>(c, c.in[0], few * c.in[1].shape[2],
                                           [&](int64_t pair, T* scores) { few_queries<T>(c, pair, scores); }));
}

static DType computed_in(DType t) { return t == DType::f64 ? t : DType::f32; }

// in: q [b,h,t,d], k, v [b,h,s,d]; out: o [b,h,t,d], log-sum-exp [b,h,t]
void attention(const Call& c) {
  if (c.in[0].shape[2] < few) return widened(c, &attention_few);
  const int64_t s = c.in[1].shape[2], d = c.in[0].shape[3], w = c.in[2].shape[3];
  RILLE_FLOATS(computed_in(c.in[0].dtype), {
    const int64_t each = Forward<T>(nullptr, s, Lanes<T>::up(d), Lanes<T>::up(w)).size;
    for_pairs<T>(c, c.in[0], each, [&](int64_t pair, T* scratch) { forward_pair<T>(c, pair, scratch); });
  });
}

template <class T>
struct Backward {
  T *q, *g, *o, *dq, *k, *turned_k, *turned_v, *weights, *slopes, *dk, *dv;
  int64_t size;
  Backward(T* memory, int64_t s, int64_t d, int64_t w) {
    const int64_t tiles = (s + block - 1) / block * block;
    Parts<T> from{memory};
    q = from.take(block * d), dq = from.take(block * d), g = from.take(block * w), o = from.take(block * w);
    k = from.take(tiles * d), turned_k = from.take(tiles * d), turned_v = from.take(tiles * w);
    weights = from.take(tiles * block), slopes = from.take(tiles * block);
    dk = from.take(tiles * d), dv = from.take(tiles * w), size = from.used;
  }
};

// Replaces the products q k' and dO V' by P and dS = scale P (dP - rowsum(dO O)).
template <class T>
static void slopes_of(const Seen& seen, const Backward<T>& at, int64_t wide, T scale, const T* lse) {
  for (int64_t r = 0; r < seen.rows; ++r) {
    const int64_t n = seen.of(r), end = up16(seen.of_four(r / 4 * 4));
    const T *g = at.g + r * wide, *y = at.o + r * wide, shift = lse[r];
    T delta = 0;
#pragma omp simd reduction(+ : delta)
    for (int64_t j = 0; j < wide; ++j) delta += g[j] * y[j];
    for (int64_t from = 0; from < end; from += 16) {
      const int64_t where = from / block * tile + r * block + from % block;
      T *p = at.weights + where, *dp = at.slopes + where;
      const int valid = int(least(16, n - from));
#pragma omp simd
      for (int j = 0; j < 16; ++j) {
        const T e = vexp(scale * p[j] - shift), slope = scale * e * (dp[j] - delta);
        p[j] = j < valid ? e : T(0);
        dp[j] = j < valid ? slope : T(0);
      }
    }
  }
}

// P = exp(scale q k' - lse); dV = P' dO; dP = dO V'; dS = scale P (dP - rowsum(dO O)); dQ = dS K; dK = dS' Q.
// Takes the query blocks from last to first. The last block sees every key, so it writes dK and dV; the others add to
// them.
template <class T>
static void backward_pair(const Call& c, int64_t pair, T* memory) {
  const Rows go = rows_of(c.in[0], pair), q = rows_of(c.in[1], pair), k = rows_of(c.in[2], pair);
  const Rows o = rows_of(c.in[4], pair), dq = rows_of(c.out[0], pair);
  const int64_t t = c.in[1].shape[2], s = c.in[2].shape[2], d = q.columns, w = o.columns;
  const int64_t wide = Lanes<T>::up(w), deep = Lanes<T>::up(d);
  const Backward<T> at(memory, s, deep, wide);
  turn_rows(rows_of(c.in[3], pair), s, at.g, wide, at.turned_v);
  for (int64_t first = 0; first < s; first += block) {
    load_rows(k.from(first), least(block, s - first), block, at.k + first * deep, deep);
    turn(at.k + first * deep, deep, deep, block, at.turned_k + first * deep);
  }
  for (int64_t first = (t - 1) / block * block; first >= 0 && !c.stopped(); first -= block) {
    const Seen seen{first, least(block, t - first), t, s, c.attrs->i[0] == 1};
    const bool adds = first + seen.rows < t;
    load_rows(q.from(first), seen.rows, block, at.q, deep);
    load_rows(go.from(first), seen.rows, block, at.g, wide);
    load_rows(o.from(first), seen.rows, block, at.o, wide);
    scores_of(seen, at.q, deep, d, at.turned_k, at.weights);
    scores_of(seen, at.g, wide, w, at.turned_v, at.slopes);
    slopes_of(seen, at, wide, T(c.attrs->f[0]), c.in[5].ptr<T>() + pair * t + first);
    shared_out(seen, at.weights, at.g, wide, at.dv, adds);
    shared_out(seen, at.slopes, at.q, deep, at.dk, adds);
    weighted(seen, at.slopes, at.k, deep, at.dq);
    store_rows(at.dq, deep, seen.rows, dq.from(first));
  }
  store_rows(at.dk, deep, s, rows_of(c.out[1], pair));
  store_rows(at.dv, wide, s, rows_of(c.out[2], pair));
}

// in: gradient of o, q, k, v, o, log-sum-exp; out: gradients of q, k, v
void attention_grad(const Call& c) {
  const int64_t s = c.in[2].shape[2], d = c.in[1].shape[3], w = c.in[3].shape[3];
  RILLE_FLOATS(computed_in(c.in[1].dtype), {
    const int64_t each = Backward<T>(nullptr, s, Lanes<T>::up(d), Lanes<T>::up(w)).size;
    for_pairs<T>(c, c.in[1], each, [&](int64_t pair, T* scratch) { backward_pair<T>(c, pair, scratch); });
  });
}

}  // namespace rille::kernels::RILLE_ISA
