// Rows and elements selected by index: embedding, gather, index_select, and their gradients. A gradient is a sum over
// equal indices. The indices are sorted stably, so that one thread computes each sum, in a fixed order, without
// atomics.
#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

// out row (o, r) = in row (o, ids[r]) of n rows. A unit is as many bytes as all rows are aligned to. y: rows.
template <class T>
DEVICE void take_rows(const T* in, const void* ids, unsigned id_type, T* out, Long outer, Long m, Long n, Long units,
                      unsigned code, Fault* fault) {
  each_row(outer * m, [&](Long r) {
    const Long o = outer == 1 ? 0 : r / m, i = r - o * m, id = id_at(ids, id_type, i);
    if (id < 0 || id >= n) {
      if (threadIdx.x == 0) report(fault, code, id, n, i);
      return;
    }
    for (Long u = threadIdx.x; u < units; u += blockDim.x) out[r * units + u] = in[(o * n + id) * units + u];
  });
}
#define TAKE(size, T)                                                                                           \
  ENTRY(take_rows_##size, 256, const T* in, const void* ids, unsigned id_type, T* out, Long outer, Long m, Long n, \
        Long units, unsigned code, Fault* fault) {                                                              \
    take_rows<T>(in, ids, id_type, out, outer, m, n, units, code, fault);                                       \
  }
TAKE(16, int4) TAKE(8, Long) TAKE(4, int) TAKE(2, unsigned short) TAKE(1, Byte)

// Views of the index's shape: index, a (with stride 0 along the dimension), out.
template <class T>
DEVICE void gather(const Windows<3>& w, unsigned id_type, Long n, Long along, Long first) {
  each_unit<1>(w, [&](auto, const Long(&at)[3]) {
    const Long id = id_at(w.data[0], id_type, at[0]);
    if (id < 0 || id >= n) return report(w.fault, gather_number, id, n, first + at[0]);
    static_cast<T*>(w.data[2])[at[2]] = static_cast<const T*>(w.data[1])[at[1] + id * along];
  });
}
#define GATHER(op, size, T)                                                                                    \
  ENTRY(gather_##size, 256, GIVEN Windows<3> w, unsigned id_type, Long n, Long along, Long first) {            \
    gather<T>(w, id_type, n, along, first);                                                                    \
  }
FOR_SIZES(GATHER, gather)

// Views of the index's shape without the dimension, which each thread visits in order: index, src, out. If several
// indices are equal, the last one is written, or all are added.
template <class T, bool add>
DEVICE void scatter(const Windows<3>& w, unsigned id_type, Long m, Long n, const Steps& step, Long before) {
  each_unit<1>(w, [&](auto, const Long(&at)[3]) {
    for (Long j = 0; j < m; ++j) {
      const Long place = at[0] + j * step.index, id = id_at(w.data[0], id_type, place);
      if (id < 0 || id >= n) {
        report(w.fault, add ? scatter_add_number : scatter_number, id, n, before + place);
        continue;
      }
      const T x = static_cast<const T*>(w.data[1])[at[1] + j * step.src];
      T& o = static_cast<T*>(w.data[2])[at[2] + id * step.out];
      if constexpr (add) o = narrow<T>(widen(o) + widen(x));
      else o = x;
    }
  });
}
#define SCATTER(op, size, T)                                                                                          \
  ENTRY(scatter_##size, 256, GIVEN Windows<3> w, unsigned id_type, Long m, Long n, GIVEN Steps step, Long before) {  \
    scatter<T, false>(w, id_type, m, n, step, before);                                                               \
  }
FOR_SIZES(SCATTER, scatter)
#define SCATTER_ADD(op, name, T)                                                                         \
  ENTRY(scatter_add_##name, 256, GIVEN Windows<3> w, unsigned id_type, Long m, Long n, GIVEN Steps step, \
          Long before) {                                                                                 \
    scatter<T, true>(w, id_type, m, n, step, before);                                                    \
  }
FOR_NUMBERS(SCATTER_ADD, scatter_add)

// Like scatter, with one thread per index. First each element of `owner` gets the largest position that writes the same
// element of out, whatever the order of threads; then only the thread of that position writes. Views of the index's
// shape: index (contiguous), src, out (stride 0 along the dimension). `owner` holds a position plus one; 0: no writer.
ENTRY(scatter_claim, 256, GIVEN Windows<3> w, unsigned id_type, Long n, Long along, unsigned* owner) {
  each_unit<1>(w, [&](auto, const Long(&at)[3]) {
    const Long id = id_at(w.data[0], id_type, at[0]);
    if (id < 0 || id >= n) return report(w.fault, scatter_number, id, n, at[0]);
    atomicMax(&owner[at[2] + id * along], unsigned(at[0]) + 1);
  });
}
template <class T>
DEVICE void scatter_put(const Windows<3>& w, unsigned id_type, Long n, Long along, const unsigned* owner) {
  each_unit<1>(w, [&](auto, const Long(&at)[3]) {
    const Long id = id_at(w.data[0], id_type, at[0]), place = at[2] + id * along;
    if (id < 0 || id >= n || owner[place] != unsigned(at[0]) + 1) return;
    static_cast<T*>(w.data[2])[place] = static_cast<const T*>(w.data[1])[at[1]];
  });
}
#define PUT(op, size, T)                                                                                             \
  ENTRY(scatter_put_##size, 256, GIVEN Windows<3> w, unsigned id_type, Long n, Long along, const unsigned* owner) { \
    scatter_put<T>(w, id_type, n, along, owner);                                                                     \
  }
FOR_SIZES(PUT, scatter_put)

// Views of the index's shape: index (contiguous), out (stride 0 along the dimension). A key is an offset in out.
ENTRY(scatter_keys, 256, GIVEN Windows<2> w, unsigned id_type, Long n, Long along, unsigned* keys, unsigned* places) {
  each_unit<1>(w, [&](auto, const Long(&at)[2]) {
    const Long id = id_at(w.data[0], id_type, at[0]);
    const bool fits = id >= 0 && id < n;
    if (!fits) report(w.fault, scatter_add_number, id, n, at[0]);
    keys[at[0]] = fits ? unsigned(at[1] + id * along) : 0xffffffffu;
    places[at[0]] = unsigned(at[0]);
  });
}

// -- a stable sort by digits of 8 bits (as Merrill and Grimshaw 2011): count, scan, scatter
ENTRY(sort_ids, 256, const void* ids, unsigned id_type, Long m, Long n, unsigned* keys, unsigned* places, unsigned code,
      Fault* fault) {
  const Long stride = Long(gridDim.x) * blockDim.x;
  for (Long i = Long(blockIdx.x) * blockDim.x + threadIdx.x; i < m; i += stride) {
    const Long id = id_at(ids, id_type, i);
    const bool fits = id >= 0 && id < n;
    if (!fits) report(fault, code, id, n, i);
    keys[i] = fits ? unsigned(id) : 0xffffffffu;         // a key beyond every row, which no sum includes
    places[i] = unsigned(i);
  }
}

// Maps numbers to keys that sort as unsigned integers. All NaN get the same key, the largest; both zeros get one key.
DEVICE unsigned key_of(int x) { return unsigned(x) ^ 0x80000000u; }
DEVICE unsigned key_of(Small x) { return key_of(int(x)); }
DEVICE unsigned key_of(Byte x) { return key_of(int(x)); }
DEVICE unsigned long long key_of(Long x) { return static_cast<unsigned long long>(x) ^ 0x8000000000000000ull; }
DEVICE unsigned key_of(float x) {
  if (x != x) return 0xffffffffu;
  const unsigned bits = __float_as_uint(x + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
DEVICE unsigned long long key_of(double x) {
  if (x != x) return ~0ull;
  const unsigned long long bits = static_cast<unsigned long long>(__double_as_longlong(x + 0.0));
  return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}
template <class T> struct KeyOf { typedef unsigned type; };
template <> struct KeyOf<Long> { typedef unsigned long long type; };
template <> struct KeyOf<double> { typedef unsigned long long type; };
#define SORT_ENDS(op, name, T)                                                                                     \
  ENTRY(sort_begin_##name, 256, const T* in, Long count, int descending, KeyOf<T>::type* keys, unsigned* places) { \
    const Long stride = Long(gridDim.x) * blockDim.x;                                                              \
    for (Long i = Long(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {                           \
      const KeyOf<T>::type key = key_of(widen(in[i]));                                                             \
      keys[i] = descending ? ~key : key;                                                                           \
      places[i] = unsigned(i);                                                                                     \
    }                                                                                                              \
  }                                                                                                                \
  ENTRY(sort_end_##name, 256, const T* in, const unsigned* places, Long rows, Long n, Long k, T* out, Long* where) { \
    const Long stride = Long(gridDim.x) * blockDim.x;                                                              \
    for (Long i = Long(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * k; i += stride) {                        \
      const Long row = i / k, from = places[row * n + (i - row * k)];                                              \
      out[i] = in[from];                                                                                           \
      where[i] = from - row * n;                                                                                   \
    }                                                                                                              \
  }
FOR_NUMBERS(SORT_ENDS, sort)

// The digit of element i: of its key or, in the passes that sort by row, of the number of its row.
template <class K> DEVICE unsigned digit_of(const K* keys, const unsigned* places, Long i, const SortPass& s) {
  if (s.row) return unsigned((s.by_row.divisor ? divide(places[i],
                                                        s.by_row) : places[i] / unsigned(s.row)) >> s.shift) & 255u;
  return unsigned(keys[i] >> s.shift) & 255u;
}
template <class K> DEVICE void sort_count(const K* keys, const unsigned* places, unsigned* counts, const SortPass& s) {
  __shared__ unsigned mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  const Long first = blockIdx.x * s.tile, end = first + s.tile < s.count ? first + s.tile : s.count;
  for (Long i = first + threadIdx.x; i < end; i += 256) atomicAdd(&mine[digit_of(keys, places, i, s)], 1u);
  __syncthreads();
  counts[threadIdx.x * gridDim.x + blockIdx.x] = mine[threadIdx.x];
}
// One block: replaces each count by the sum of the counts before it.
ENTRY(sort_scan, 1024, unsigned* counts, unsigned n) {
  __shared__ unsigned warps[32];
  __shared__ unsigned carry;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) carry = 0;
  for (unsigned first = 0; first < n; first += 1024) {
    const unsigned i = first + threadIdx.x, x = i < n ? counts[i] : 0;
    unsigned sum = x;
#pragma unroll
    for (unsigned d = 1; d < 32; d *= 2) {
      const unsigned below = __shfl_up_sync(EVERY_LANE, sum, d);
      if (lane >= d) sum += below;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    unsigned before = carry;
    for (unsigned w = 0; w < warp; ++w) before += warps[w];
    if (i < n) counts[i] = before + sum - x;
    __syncthreads();
    if (threadIdx.x == 1023) carry = before + sum;
    __syncthreads();
  }
}
// Writes the elements of the tile to their sorted places, 256 at a time, in order.
template <class K>
DEVICE void sort_move(const K* keys, const unsigned* places, K* keys_out, unsigned* places_out, const unsigned* counts,
                      const SortPass& s) {
  __shared__ unsigned base[256];
  __shared__ unsigned of_warp[8][256];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  base[threadIdx.x] = counts[threadIdx.x * gridDim.x + blockIdx.x];
  const Long begin = blockIdx.x * s.tile, end = begin + s.tile < s.count ? begin + s.tile : s.count;
  for (Long first = begin; first < end; first += 256) {
#pragma unroll
    for (int w = 0; w < 8; ++w) of_warp[w][threadIdx.x] = 0;
    __syncthreads();
    const Long i = first + threadIdx.x;
    const unsigned digit = i < end ? digit_of(keys, places, i, s) : 256u;
    const unsigned same = __match_any_sync(EVERY_LANE, digit), before = __popc(same & ((1u << lane) - 1));
    if (before == 0 && digit < 256) of_warp[warp][digit] = unsigned(__popc(same));
    __syncthreads();
    unsigned sum = base[threadIdx.x];                    // the first slot of this thread's digit, then of each warp
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      const unsigned n = of_warp[w][threadIdx.x];
      of_warp[w][threadIdx.x] = sum;
      sum += n;
    }
    base[threadIdx.x] = sum;
    __syncthreads();
    if (digit < 256) {
      const unsigned to = of_warp[warp][digit] + before;
      keys_out[to] = keys[i];
      places_out[to] = places[i];
    }
    __syncthreads();
  }
}
#define SORT(bits, K)                                                                                                \
  ENTRY(sort_count_##bits, 256, const K* keys, const unsigned* places, unsigned* counts, GIVEN SortPass s) {         \
    sort_count<K>(keys, places, counts, s);                                                                          \
  }                                                                                                                  \
  ENTRY(sort_move_##bits, 256, const K* keys, const unsigned* places, K* keys_out, unsigned* places_out,             \
        const unsigned* counts, GIVEN SortPass s) {                                                                  \
    sort_move<K>(keys, places, keys_out, places_out, counts, s);                                                     \
  }
SORT(32, unsigned) SORT(64, unsigned long long)

// out row (o, key) = the sum of the src rows (o, place) with that key, in the order of places; `onto`: is added to out.
// The threads of the first place (y) of a segment of equal keys sum the segment; blockIdx.y is o.
template <class T>
DEVICE void sum_segments(const T* src, const unsigned* keys, const unsigned* places, T* out, Long m, Long n, Long inner,
                         int packed, int onto) {
  typedef Wide<T> C;
  each_row(m, [&](Long first) {
    const unsigned key = keys[first];
    if (Long(key) >= n || (first > 0 && keys[first - 1] == key)) return;
    const T* from = src + Long(blockIdx.y) * m * inner;
    T* to = out + (Long(blockIdx.y) * n + key) * inner;
    each_column<pack_of(sizeof(T))>(inner, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C sum[V], x[V];
#pragma unroll
      for (int v = 0; v < V; ++v) sum[v] = C(0);
      // Loads eight rows at a time: a frequent index has many rows, and loading one after another would wait for each.
      constexpr int ahead = 8;
      C rows[ahead][V];
      for (Long k = first, count = ahead; count == ahead; k += count) {
        unsigned place[ahead];
        count = 0;
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
          const bool mine = k + i < m && keys[k + i] == key;
          place[i] = mine ? places[k + i] : 0;
          count += mine;
        }
#pragma unroll
        for (int i = 0; i < ahead; ++i)
          if (i < count) load_wide<T, V>(from + Long(place[i]) * inner + j, rows[i]);
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
#pragma unroll
          for (int v = 0; v < V; ++v) sum[v] = i < count ? C(sum[v] + rows[i][v]) : sum[v];
        }
      }
      if (onto) {
        load_wide<T, V>(to + j, x);
#pragma unroll
        for (int v = 0; v < V; ++v) sum[v] = C(x[v] + sum[v]);
      }
      store_wide<T, V>(to + j, sum);
    });
  });
}
#define SEGMENTS(op, name, T)                                                                                         \
  ENTRY(sum_segments_##name, 256, const T* src, const unsigned* keys, const unsigned* places, T* out, Long m, Long n, \
        Long inner, int packed, int onto) {                                                                           \
    sum_segments<T>(src, keys, places, out, m, n, inner, packed, onto);                                               \
  }
FOR_NUMBERS(SEGMENTS, sum_segments)

// -- zero above diagonal `diagonal` (tril), or below it (`upper`), of [m, n] matrices
template <class T> DEVICE void tril(const T* in, T* out, Long rows, Long m, Long n, Long diagonal, int upper) {
  each_row(rows, [&](Long r) {
    const Long cut = r % m + diagonal + (upper ? 0 : 1);   // first column of the upper part
    for (Long j = threadIdx.x; j < n; j += blockDim.x)
      out[r * n + j] = (j >= cut) == (upper != 0) ? in[r * n + j] : T(0);
  });
}
#define TRIL(op, size, T)                                                                                     \
  ENTRY(tril_##size, 256, const T* in, T* out, Long rows, Long m, Long n, Long diagonal, int upper) {         \
    tril<T>(in, out, rows, m, n, diagonal, upper);                                                            \
  }
FOR_SIZES(TRIL, tril)

}  // namespace rille::kernels::cuda
