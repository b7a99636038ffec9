// Launches of cross entropy, whose kernels read a row as softmax does (softmax.cu).
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {
using Long = long long;
}  // namespace

void cross_entropy(const Call& c, Launcher& l, const Names& names) {
  const View &x = c.in[0], &labels = c.in[1];
  const unsigned type = unsigned(labels.dtype);
  const Long ignore = c.attrs->i[0];
  const RowShape r(l, labels.count(), last_of(x), size_bytes(x.dtype), {x.data});
  void* losses = l.scratch(std::size_t(r.rows + 1) * size_bytes(c.out[1].dtype));
  if (!losses) return c.fail("cross_entropy: no memory for %lld losses\n"
                             "work on smaller tensors or batches, or free tensors", (long long)r.rows);
  if (r.rows)
    launch(l, name_in(names, x.dtype), r.grid, r.block, 0, x.data, labels.data, type, c.out[1].data, losses,
           Long(r.rows), Long(r.n), r.packed, ignore, c.attrs->f[0], l.fault());
  launch(l, c.out[0].dtype == DType::f64 ? "cross_entropy_mean_f64" : "cross_entropy_mean_f32", {}, {1024}, 0, losses,
         labels.data, type, Long(r.rows), ignore, c.out[0].data);
}

void cross_entropy_grad(const Call& c, Launcher& l, const Names& names) {
  const View &x = c.in[1], &labels = c.in[2], &o = c.out[0];
  const unsigned type = unsigned(labels.dtype);
  const Long ignore = c.attrs->i[0];
  const RowShape r(l, labels.count(), last_of(x), size_bytes(x.dtype), {x.data, o.data});
  if (r.rows == 0) return;
  void* counted = l.scratch(sizeof(unsigned long long));
  if (!counted) return c.fail("cross_entropy: no memory to count labels\n"
                              "work on smaller tensors or batches, or free tensors");
  l.fill(counted, 0, sizeof(unsigned long long));
  launch(l, "count_labels", grid_for(l, r.rows), {threads}, 0, labels.data, type, Long(r.rows), ignore, counted);
  launch(l, name_in(names, x.dtype), r.grid, r.block, 0, c.in[0].data, x.data, labels.data, type, c.in[3].data, o.data,
         Long(r.rows), Long(r.n), r.packed, ignore, c.attrs->f[0], counted);
}

}  // namespace rille::kernels::cuda
