// Launches of softmax, log_softmax and their gradients, over contiguous rows of the last dimension.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {
using Long = long long;
}  // namespace

void softmax(const Call& c, Launcher& l, const Names& names) {
  const View &x = c.in[0], &y = c.out[0];
  if (y.count() == 0) return;
  const RowShape r(l, rows_of(y), last_of(y), size_bytes(y.dtype), {x.data, y.data});
  launch(l, name_in(names, y.dtype), r.grid, r.block, 0, x.data, y.data, Long(r.rows), Long(r.n), r.packed);
}

void softmax_grad(const Call& c, Launcher& l, const Names& names) {
  const View& o = c.out[0];
  if (o.count() == 0) return;
  const RowShape r(l, rows_of(o), last_of(o), size_bytes(o.dtype), {c.in[0].data, c.in[1].data, o.data});
  launch(l, name_in(names, o.dtype), r.grid, r.block, 0, c.in[0].data, c.in[1].data, o.data, Long(r.rows), Long(r.n),
         r.packed);
}

}  // namespace rille::kernels::cuda
