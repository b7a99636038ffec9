// Matrix products of operands with any strides, used if no library supports them. f16 and bf16 are added up in f32.
#include "kernels/cuda/tile.h"

namespace rille::kernels::cuda {

// Loads 64 x 16 elements of a matrix into shared memory, zeros outside the matrix. Neighbouring threads read
// neighbours.
template <class T, class C>
DEVICE void load_tile(TileSide<C>& tile, const T* from, Long rows, Long ks, Long row_step, Long k_step) {
  const bool along = k_step == 1;
#pragma unroll
  for (int pass = 0; pass < 4; ++pass) {
    const int row = along ? int(threadIdx.x / 16) + 16 * pass : int(threadIdx.x % 64);
    const int k = along ? int(threadIdx.x % 16) : int(threadIdx.x / 64) + 4 * pass;
    tile[k][row] = row < rows && k < ks ? C(widen(from[row * row_step + k * k_step])) : C(0);
  }
}

template <class T> DEVICE void matmul(const Product& p) {
  typedef Wide<T> C;
  __shared__ TileSide<C> left;
  __shared__ TileSide<C> right;
  const Long across = (p.n + 63) / 64, row = Long(blockIdx.x) / across * 64, column = Long(blockIdx.x) % across * 64;
  for (Long batch = blockIdx.y; batch < p.batches; batch += gridDim.y) {
    Long a_at = 0, b_at = 0, rest = batch;
    for (int d = 0; d < p.rank; ++d) {
      const Long next = rest / p.size[d], i = rest - next * p.size[d];
      a_at += i * p.a_batch[d];
      b_at += i * p.b_batch[d];
      rest = next;
    }
    const T* a = static_cast<const T*>(p.a) + a_at + row * p.a_row;
    const T* b = static_cast<const T*>(p.b) + b_at + column * p.b_column;
    C sum[4][4] = {};
    for (Long k = 0; k < p.k; k += 16) {
      load_tile(left, a + k * p.a_column, p.m - row, p.k - k, p.a_row, p.a_column);
      load_tile(right, b + k * p.b_row, p.n - column, p.k - k, p.b_column, p.b_row);
      add_tile(sum, left, right);
    }
    T* out = static_cast<T*>(p.out) + batch * p.m * p.n;
    each_of_tile(sum, p.m - row, p.n - column, [&](int down, int over, C x) {
      const Long c = column + over;
      if (p.bias) x += widen(static_cast<const T*>(p.bias)[c]);
      out[(row + down) * p.n + c] = narrow<T>(x);
    });
  }
}
#define MATMUL(op, name, T) ENTRY(matmul_##name, 256, GIVEN Product p) { matmul<T>(p); }
FOR_FLOATS(MATMUL, matmul)

}  // namespace rille::kernels::cuda
