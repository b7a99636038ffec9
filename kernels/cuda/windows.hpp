// Helpers for launches: merged and packed views for the kernels of params.h, grid sizes, kernel names by type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "kernels/cuda/launcher.hpp"

namespace rille::kernels::cuda {

// The names of an operation's kernel for each type, in the order of DType; bool is stored as u8.
struct Names { const char* of[9]; };
#define RILLE_NAMES(op) \
  ::rille::kernels::cuda::Names{ \
      {op "_u8", op "_u8", op "_i8", op "_i32", op "_i64", op "_f16", op "_bf16", op "_f32", op "_f64"}}
inline const char* name_in(const Names& names, DType t) { return names.of[int(t)]; }
// The name of a kernel that only moves elements of `bytes` bytes: "copy_4".
#define RILLE_SIZED(op, bytes) \
  ((bytes) == 8 ? op "_8" : (bytes) == 4 ? op "_4" : (bytes) == 2 ? op "_2" : op "_1")

constexpr Divider divider_of(unsigned divisor) {
  unsigned shift = 0;
  while (shift < 31 && (1u << shift) < divisor) ++shift;
  const std::uint64_t power = std::uint64_t(1) << 32;
  return {divisor, unsigned(power * ((std::uint64_t(1) << shift) - divisor) / divisor + 1), shift};
}

// Launches a kernel with the given arguments: launch(l, "name", grid, block, shared, a, b, c).
template <class... A>
void launch(Launcher& l, const char* kernel, Grid grid, Grid block, unsigned shared_bytes, A... arguments) {
  void* list[] = {static_cast<void*>(&arguments)...};
  l.launch(kernel, grid, block, shared_bytes, list);
}

constexpr unsigned threads = 256;                 // default number of threads per block

constexpr std::int64_t blocks_for(std::int64_t work, std::int64_t each) { return (work + each - 1) / each; }
// Blocks for `work` elements that threads visit in strides: at most eight per multiprocessor.
inline Grid grid_for(const Launcher& l, std::int64_t work) {
  return {unsigned(std::max<std::int64_t>(1, std::min<std::int64_t>(blocks_for(work, threads),
                                                                    std::int64_t(l.multiprocessors()) * 8)))};
}

constexpr std::int64_t int_end = std::int64_t(1) << 31;   // limit of what kernels count in 32 bits

// The length of the last dimension, and the number of contiguous rows.
inline std::int64_t last_of(const View& v) { return v.shape[v.shape.n - 1]; }
inline std::int64_t rows_of(const View& v) { return last_of(v) ? v.count() / last_of(v) : 0; }

// Views of one shape, the slowest dimension first; dimensions of size 1 are left out and contiguous neighbours merged.
template <int N> struct Joined {
  int rank = 0;
  std::int64_t shape[max_rank] = {}, stride[N][max_rank] = {}, count = 1;
  explicit Joined(const View* const (&v)[N]) {
    for (int d = 0; d < v[0]->shape.n; ++d) {
      const std::int64_t size = v[0]->shape[d];
      count *= size;
      if (size == 1) continue;
      bool joins = rank > 0;
      for (int k = 0; joins && k < N; ++k) joins = stride[k][rank - 1] == v[k]->strides[d] * size;
      if (!joins) ++rank;
      shape[rank - 1] = joins ? shape[rank - 1] * size : size;
      for (int k = 0; k < N; ++k) stride[k][rank - 1] = v[k]->strides[d];
    }
    if (rank == 0) shape[rank++] = 1;             // a view of one element
  }
};

// Whether a unit can be `pack` elements, because the rows of all operands allow wide loads.
template <int N>
bool packs(const Joined<N>& j, const View* const (&v)[N], int constant, std::int64_t pack) {
  const int last = j.rank - 1;
  if (j.rank > 1 && j.shape[last] % pack) return false;
  if (j.shape[last] < pack) return false;
  for (int k = 0; k < N; ++k) {
    if (k == constant) continue;
    const std::int64_t inner = j.stride[k][last];
    if (inner == 0 && k < N - 1) continue;
    if (inner != 1) return false;
    const std::size_t bytes = std::size_t(pack) * size_bytes(v[k]->dtype);
    if (reinterpret_cast<std::uintptr_t>(v[k]->data) % bytes) return false;
    for (int d = 0; d < last; ++d) if (j.stride[k][d] % pack) return false;
  }
  return true;
}

constexpr std::int64_t units_max = std::int64_t(1) << 30;

// Calls go(Windows<N>) for the views `v`, the output last: once, or several times if there are more than 2^30 units.
// `pack`: the elements that the kernel can take at once.
template <int N, class Go>
void each_windows(Launcher& l, const View* const (&v)[N], const Call& c, int pack, int constant, const Go& go) {
  const Joined<N> j(v);
  if (j.count == 0) return;
  Windows<N> w{};
  const bool packed = packs(j, v, constant, pack);
  w.packed = packed;
  w.constant = constant;
  w.rank = j.rank;
  w.type = unsigned(v[0]->dtype);
  w.fault = l.fault();
  if (c.attrs) {
    w.number[0] = c.attrs->f[0];
    w.number[1] = c.attrs->f[1];
  }
  std::int64_t size[max_rank];
  for (int d = 0; d < j.rank; ++d) {              // Windows has the fastest dimension first
    const int from = j.rank - 1 - d;
    const std::int64_t each = d == 0 && packed ? pack : 1;
    size[d] = j.shape[from] / each;
    w.size[d] = divider_of(unsigned(std::min(size[d], units_max)));
    for (int k = 0; k < N; ++k) w.step[k][d] = j.stride[k][from] * each;
  }
  if (packed && j.rank == 1) w.tail = unsigned(j.shape[0] % pack);
  for (int k = 0; k < N; ++k) {
    if (packed && k != constant && w.step[k][0] == 0) w.spread |= 1u << k;
    w.data[k] = v[k]->data;
  }
  // A piece has a range of dimension `cut`, everything in the faster dimensions, and one index of each slower one.
  std::int64_t inner = 1, outer = 1;
  int cut = 0;
  while (cut < j.rank - 1 && inner * size[cut] <= units_max) inner *= size[cut++];
  for (int d = cut + 1; d < j.rank; ++d) outer *= size[d];
  w.rank = cut + 1;
  const std::int64_t each = units_max / inner;
  for (std::int64_t o = 0; o < outer; ++o) {
    std::int64_t place[N] = {};
    for (std::int64_t d = cut + 1, rest = o; d < j.rank; rest /= size[d++])
      for (int k = 0; k < N; ++k) place[k] += rest % size[d] * w.step[k][d];
    for (std::int64_t first = 0; first < size[cut]; first += each) {
      Windows<N> piece = w;
      const std::int64_t n = std::min(each, size[cut] - first);
      for (int k = 0; k < N; ++k)
        piece.data[k] = static_cast<char*>(w.data[k]) +
                        (place[k] + first * w.step[k][cut]) * std::int64_t(size_bytes(v[k]->dtype));
      piece.units = unsigned(n * inner);
      if (first + n < size[cut]) piece.tail = 0;
      go(piece);
    }
  }
}

template <int N>
void launch_windows(Launcher& l, const char* kernel, const View* const (&v)[N], const Call& c, int pack,
                    int constant = -1) {
  each_windows<N>(l, v, c, pack, constant, [&](const Windows<N>& w) {
    launch(l, kernel, grid_for(l, std::max(w.units, w.tail)), {threads}, 0, w);
  });
}

// The smallest power of two from n on, and `most` at most.
inline unsigned power_above(std::int64_t n, unsigned most) {
  unsigned p = 1;
  while (p < most && p < n) p *= 2;
  return p;
}

// The elements that a kernel takes at once, as pack_of() in walk.h.
constexpr int pack_of(std::size_t element) { return element >= 8 ? 2 : element == 4 ? 4 : 8; }

inline bool aligned(const void* data, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(data) % bytes == 0; }

// Contiguous rows of n elements: whether a thread may take packs of elements, and the block and grid for rows.h.
struct RowShape {
  std::int64_t rows, n;
  int packed;
  Grid block, grid;
  // `data`: all memories from which rows are read or to which they are written.
  RowShape(const Launcher& l, std::int64_t row_count, std::int64_t columns, std::size_t element,
           std::initializer_list<const void*> data)
      : rows(row_count), n(columns) {
    const int pack = pack_of(element);
    packed = n % pack == 0;
    for (const void* p : data) packed = packed && aligned(p, element * std::size_t(pack));
    const std::int64_t units = packed ? n / pack : n;
    unsigned lanes = 32;                          // each lane takes about four units, or more if rows are very long
    while (lanes < 512 && std::int64_t(lanes) * 4 < units) lanes *= 2;
    block = {lanes, lanes == 32 ? 8u : 1u};
    grid = rows_grid(l, rows, block);
  }
  static Grid rows_grid(const Launcher& l, std::int64_t rows, Grid block) {
    const std::int64_t at_once = std::max<std::int64_t>(1, 2048 / (block.x * block.y));
    const std::int64_t most = std::int64_t(l.multiprocessors()) * 4 * at_once;
    return {unsigned(std::max<std::int64_t>(1, std::min(blocks_for(rows, block.y), most)))};
  }
};

}  // namespace rille::kernels::cuda
