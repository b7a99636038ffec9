// CUDA C++ for a plain C++ compiler, part 6: the basic classes of cooperative groups.
#pragma once
#include "half.h"

namespace cooperative_groups {

struct thread_block {
  static void sync() { rille_barrier(0); }
  static unsigned thread_rank() { return rille_thread(); }
  static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
RILLE_IN thread_block this_thread_block() { return {}; }

RILLE_UNWATCHED __attribute__((noinline, unused)) static void rille_grid_sync() {
  const rille_me me = rille_here();
  rille_worker->own = &rille_own;
  rille_worker->grid_barrier(rille_worker, rille_thread(), RILLE_SITE);
  rille_back(me);
}
struct grid_group {
  static bool is_valid() { return true; }
  static void sync() { rille_grid_sync(); }
  static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long size() { return num_blocks() * thread_block::size(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long block_rank() {
    return blockIdx.x + gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
  }
  static unsigned long long thread_rank() { return block_rank() * thread_block::size() + rille_thread(); }
};
RILLE_IN grid_group this_grid() { return {}; }

template <unsigned N, class Parent = thread_block> struct thread_block_tile {
  static_assert(N && N <= 32 && (N & (N - 1)) == 0, "tiles have 1, 2, 4, 8, 16 or 32 threads");
  static unsigned mask() {
    return N == 32 ? 0xffffffffu : ((1u << (N & 31)) - 1) << (rille_lane() & ~(N - 1));
  }
  static void sync() { __syncwarp(mask()); }
  static unsigned thread_rank() { return rille_lane() & (N - 1); }
  static unsigned size() { return N; }
  static unsigned num_threads() { return N; }
  static unsigned meta_group_rank() { return Parent::thread_rank() / N; }
  static unsigned meta_group_size() { return (Parent::size() + N - 1) / N; }
  template <class T> static T shfl(T v, int from) { return __shfl_sync(mask(), v, from, (int)N); }
  template <class T> static T shfl_up(T v, unsigned d) { return __shfl_up_sync(mask(), v, d, (int)N); }
  template <class T> static T shfl_down(T v, unsigned d) { return __shfl_down_sync(mask(), v, d, (int)N); }
  template <class T> static T shfl_xor(T v, int bits) { return __shfl_xor_sync(mask(), v, bits, (int)N); }
  static unsigned shift() { return N == 32 ? 0 : rille_lane() & ~(N - 1); }
  static unsigned ballot(int p) { return __ballot_sync(mask(), p) >> shift(); }
  static int any(int p) { return __any_sync(mask(), p); }
  static int all(int p) { return __all_sync(mask(), p); }
};
template <unsigned N, class P> RILLE_IN thread_block_tile<N, P> tiled_partition(const P&) { return {}; }
template <class G> RILLE_IN void sync(const G& g) { g.sync(); }

template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <unsigned N, class P, class T, class F> T reduce(const thread_block_tile<N, P>& g, T v, F f) {
  for (unsigned d = N / 2; d; d /= 2) v = f(v, g.shfl_xor(v, (int)d));
  return v;
}

}  // namespace cooperative_groups
