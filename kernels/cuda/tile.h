// Device code for matrix products without tensor cores: a block of 256 threads computes 64 x 64 outputs, 4 x 4 per
// thread, and takes 16 elements of the inner dimension at once from shared memory.
#pragma once

#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

// A part of one operand, [inner][row or column]: 64 of them, padded to 68 so that neighbours are in different banks.
template <class C> using TileSide = C[16][68];

DEVICE int tile_row() { return int(threadIdx.x) / 16 * 4; }         // first row of this thread's outputs
DEVICE int tile_column() { return int(threadIdx.x) % 16 * 4; }

// sum += left * right. Waits until all threads of the block have written both; afterwards they may be overwritten.
template <class C> DEVICE void add_tile(C (&sum)[4][4], const TileSide<C>& left, const TileSide<C>& right) {
  const int down = tile_row(), over = tile_column();
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    C x[4], y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      x[j] = left[i][down + j];
      y[j] = right[i][over + j];
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int h = 0; h < 4; ++h) sum[j][h] += x[j] * y[h];
  }
  __syncthreads();
}

// Calls body(row, column, sum) for the thread's outputs that lie within rows x columns, counted from the tile's first.
template <class C, class Body>
DEVICE void each_of_tile(const C (&sum)[4][4], Long rows, Long columns, const Body& body) {
  const int down = tile_row(), over = tile_column();
#pragma unroll
  for (int j = 0; j < 4; ++j)
#pragma unroll
    for (int h = 0; h < 4; ++h)
      if (down + j < rows && over + h < columns) body(down + j, over + h, sum[j][h]);
}

}  // namespace rille::kernels::cuda
