// Launches of rotary position embedding: one thread for each pair of a row.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {
using Long = long long;
}  // namespace

void rope(const Call& c, Launcher& l, const Names& names) {
  const View& x = c.in[0];
  const std::int64_t d = x.shape[x.shape.n - 1], t = x.shape[x.shape.n - 2], half = d / 2;
  if (x.count() == 0 || half == 0) return;
  unsigned lanes = 1;
  while (lanes < threads && lanes < half) lanes *= 2;
  const Grid block{lanes, threads / lanes};
  launch(l, name_in(names, x.dtype), RowShape::rows_grid(l, x.count() / d, block), block, 0, x.data, c.in[1].data,
         c.in[2].data, int(c.in[1].dtype != x.dtype), c.out[0].data, Long(x.count() / d), Long(t), Long(half),
         int(c.attrs->i[0] == 1), int(c.attrs->i[1] != 0));
}

}  // namespace rille::kernels::cuda
