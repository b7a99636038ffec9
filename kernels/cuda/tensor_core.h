// Device code for tensor cores: a warp multiplies 16 x 16 by 16 x 8 (mma.m16n8k16, sm_80 and later). Tiles are in
// shared memory with the 16-byte pieces of each row permuted, so that eight rows are read at once without bank
// conflicts. For the shim the same functions are made of shuffles with the same register layout, so it runs what a GPU
// runs.
#pragma once

#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

// Rounds two numbers into one register; the first is in the low half.
DEVICE unsigned pair_of(Brain, float a, float b) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const unsigned*>(&two);
}
DEVICE unsigned pair_of(Half, float a, float b) {
  const __half2 two = __floats2half2_rn(a, b);
  return *reinterpret_cast<const unsigned*>(&two);
}

#ifdef RILLE_CPU
template <class T> DEVICE float half_of(unsigned pair, int high) {
  const unsigned short bits = static_cast<unsigned short>(high ? pair >> 16 : pair);
  T x;
  __builtin_memcpy(&x, &bits, 2);
  return widen(x);
}
template <class T> DEVICE void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  const int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  for (int q = 0; q < 4; ++q) {
    unsigned rows[4], columns[2][2];
    for (int i = 0; i < 4; ++i) rows[i] = __shfl_sync(EVERY_LANE, a[i], g * 4 + q);
    for (int n = 0; n < 2; ++n)
      for (int i = 0; i < 2; ++i) columns[n][i] = __shfl_sync(EVERY_LANE, b[i], (2 * t + n) * 4 + q);
    for (int i = 0; i < 4; ++i)                    // row g or g + 8, column 2 t or 2 t + 1
      for (int k = 0; k < 2; ++k)
        for (int high = 0; high < 2; ++high)
          c[i] += half_of<T>(rows[i / 2 + 2 * k], high) * half_of<T>(columns[i % 2][k], high);
  }
}
template <class T> DEVICE void load_matrices(unsigned (&r)[4], const T* row) {
  const int lane = int(threadIdx.x % 32);
  for (int m = 0; m < 4; ++m) {
    const T* from = __shfl_sync(EVERY_LANE, row, m * 8 + lane / 4);
    __builtin_memcpy(&r[m], from + 2 * (lane % 4), 4);
  }
}
template <class T> DEVICE void load_turned(unsigned (&r)[4], const T* row) {
  const int lane = int(threadIdx.x % 32);
  for (int m = 0; m < 4; ++m)
    for (int high = 0; high < 2; ++high) {
      const T* from = __shfl_sync(EVERY_LANE, row, m * 8 + 2 * (lane % 4) + high);
      __builtin_memcpy(reinterpret_cast<unsigned short*>(&r[m]) + high, from + lane / 4, 2);
    }
}
// Copies 16 bytes; writes zeros if `there` is false.
template <class T> DEVICE void copy_async(T* to, const T* from, bool there) {
  if (there) __builtin_memcpy(to, from, 16);
  else __builtin_memset(to, 0, 16);
}
DEVICE void end_copies() {}
template <int left> DEVICE void wait_copies() {}
DEVICE float exp2_fast(float x) { return exp2f(x); }
#else
DEVICE unsigned shared_at(const void* p) { return unsigned(__cvta_generic_to_shared(p)); }
#define RILLE_MMA(T, type)                                                                                        \
  DEVICE void multiply(T, float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {                        \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "     \
                 "{%8,%9}, {%0,%1,%2,%3};"                                                                        \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                 \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                             \
  }
RILLE_MMA(Brain, "bf16")
RILLE_MMA(Half, "f16")
template <class T> DEVICE void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  multiply(T(), c, a, b);
}
template <class T> DEVICE void load_matrices(unsigned (&r)[4], const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_at(row)) : "memory");
}
template <class T> DEVICE void load_turned(unsigned (&r)[4], const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_at(row)) : "memory");
}
template <class T> DEVICE void copy_async(T* to, const T* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_at(to)), "l"(from), "r"(there ? 16 : 0)
               : "memory");
}
DEVICE void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int left> DEVICE void wait_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory"); }
DEVICE float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

// The address of 8 numbers of a row, from `column` on, which is a multiple of 8.
template <int D, class T> DEVICE T* piece(T* tile, int row, int column) {
  return tile + row * D + (((column >> 3) ^ (row & 7)) << 3);
}
// Loads rows [first, first + rows) of a matrix with D columns; zeros from row `limit` on. All threads must call it.
template <int D, int rows, int block, class T>
DEVICE void load_rows(T* tile, const T* from, Long step, int first, int limit) {
#pragma unroll
  for (int i = int(threadIdx.x); i < rows * (D / 8); i += block) {
    const int r = i / (D / 8), c = i % (D / 8) * 8;
    const bool there = first + r < limit;
    copy_async(piece<D>(tile, r, c), from + (there ? Long(first + r) * step + c : 0), there);
  }
}

// Starts copying tile n of two matrices: rows [first, first + tile) of both. Each matrix has two places in shared
// memory, used in turn, 2 * tile * D apart.
template <int D, int tile, int block, class T>
DEVICE void fetch_tiles(T* places, int n, const T* a, Long a_step, const T* b, Long b_step, int first, int limit) {
  T* to = places + (n & 1) * 2 * tile * D;
  load_rows<D, tile, block>(to, a, a_step, first, limit);
  load_rows<D, tile, block>(to + tile * D, b, b_step, first, limit);
  end_copies();
}
// Waits until tile n of `tiles` is loaded for every thread of the block; starts loading the next one by fetch(n + 1).
template <class Fetch> DEVICE void await_tile(int n, int tiles, const Fetch& fetch) {
  if (n + 1 < tiles) {
    fetch(n + 1);
    wait_copies<1>();
  } else {
    wait_copies<0>();
  }
  __syncthreads();
}

// Loads the left operand: 16 rows from `row`, 16 columns from `column`.
template <int D, class T> DEVICE void left_of(unsigned (&a)[4], T* tile, int row, int column) {
  const int lane = int(threadIdx.x % 32);
  load_matrices(a, piece<D>(tile, row + lane % 16, column + lane / 16 * 8));
}
// sum[n] += left * tile', for rows 8n to 8n + 7 of `tile`. left(x, k) loads the left operand's columns from 16k.
template <int D, int N, class T, class Left> DEVICE void add_turned(float (&sum)[N][4], const Left& left, T* tile) {
  const int lane = int(threadIdx.x % 32);
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    unsigned a[4];
    left(a, k);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      unsigned b[4];
      load_matrices(b, piece<D>(tile, n * 8 + lane / 16 * 8 + lane % 8, k * 16 + lane / 8 % 2 * 8));
      const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
      mma<T>(sum[n], a, first);
      mma<T>(sum[n + 1], a, second);
    }
  }
}
// sum += weights (16 rows, K columns, in the layout of add_turned's sums) times the K rows of `tile`.
template <int D, int N, class T> DEVICE void add_plain(float (&sum)[D / 8][4], const float (&weights)[N][4], T* tile) {
  const int lane = int(threadIdx.x % 32);
#pragma unroll
  for (int k = 0; k < N / 2; ++k) {
    const float(&x)[4] = weights[2 * k];
    const float(&y)[4] = weights[2 * k + 1];
    const unsigned a[4] = {pair_of(T(), x[0], x[1]), pair_of(T(), x[2], x[3]), pair_of(T(), y[0], y[1]),
                           pair_of(T(), y[2], y[3])};
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      unsigned b[4];
      load_turned(b, piece<D>(tile, k * 16 + lane % 16, n * 8 + lane / 16 * 8));
      const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
      mma<T>(sum[n], a, first);
      mma<T>(sum[n + 1], a, second);
    }
  }
}
// Stores a warp's 16 rows of sums, each row times its factor, through shared memory, in pieces of 16 bytes.
template <int D, class T>
DEVICE void store_rows(const float (&sum)[D / 8][4], float upper, float lower, T* tile, int row, T* to, Long step,
                       int first,
                       int limit) {
  const int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4;
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
    *reinterpret_cast<unsigned*>(piece<D>(tile, row + g, n * 8) + 2 * t) =
        pair_of(T(), sum[n][0] * upper, sum[n][1] * upper);
    *reinterpret_cast<unsigned*>(piece<D>(tile, row + g + 8, n * 8) + 2 * t) =
        pair_of(T(), sum[n][2] * lower, sum[n][3] * lower);
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 16 * (D / 8); i += 32) {
    const int r = i / (D / 8), c = i % (D / 8) * 8;
    if (first + row + r < limit)
      *reinterpret_cast<Pack<T, 8>*>(to + Long(first + row + r) * step + c) =
          *reinterpret_cast<const Pack<T, 8>*>(piece<D>(tile, row + r, c));
  }
}

}  // namespace rille::kernels::cuda
