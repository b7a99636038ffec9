// Launches of normalisations: over contiguous rows (the last dimension), and over channels.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

// Whether weights have the type in which rows are computed (f32 for f16 and bf16) rather than the rows' type.
int is_wide(DType rows, const View& w) { return w.data && w.dtype != rows; }
using Long = long long;

}  // namespace

void layer_norm(const Call& c, Launcher& l, const Names& names) {
  const View &x = c.in[0], &w = c.in[1], &b = c.in[2], &y = c.out[0];
  const RowShape r(l, rows_of(x), last_of(x), size_bytes(x.dtype), {x.data, y.data});
  if (r.rows == 0) return;
  launch(l, name_in(names, x.dtype), r.grid, r.block, 0, x.data, w.data, b.data,
         is_wide(x.dtype, w.data ? w : b), y.data, c.out[1].data, c.out[2].data, Long(r.rows), Long(r.n), r.packed,
         c.attrs->f[0]);
}

namespace {

// Gradients of x, weight and bias; `means` and `db` are null for rms_norm.
void norm_grads(const Call& c, Launcher& l, const View& g, const View& x, const View& w, void* means, void* rstds,
                const View& dx, const View& dw, const View* db) {
  const RowShape r(l, rows_of(x), last_of(x), size_bytes(x.dtype), {g.data, x.data, dx.data});
  if (r.rows)
    launch(l, name_in(RILLE_NAMES("norm_grad"), x.dtype), r.grid, r.block, 0, g.data, x.data, w.data,
           is_wide(x.dtype, w), means, rstds, dx.data, Long(r.rows), Long(r.n), r.packed);
  void* const bias = db ? db->data : nullptr;
  if ((!dw.data && !bias) || r.n == 0) return;
  // Shares depend on the number of rows only, so every GPU gives the same bits.
  const Long shares = std::clamp<Long>(blocks_for(r.rows, 128), 1, 64), each = blocks_for(r.rows, shares);
  const std::size_t bytes = std::size_t(shares * 2 * r.n) * size_bytes(stats_type(x.dtype));
  void* parts = l.scratch(bytes);
  if (!parts) return c.fail("no memory for %lld partial sums of a normalisation's weights\n"
                            "work on smaller tensors or batches, or free tensors", shares);
  launch(l, name_in(RILLE_NAMES("norm_weights"), x.dtype), {unsigned(blocks_for(r.n, 64)), unsigned(shares)}, {64, 8},
         0,
         g.data, x.data, means, rstds, parts, Long(r.rows), Long(r.n), each);
  launch(l, name_in(RILLE_NAMES("norm_fold"), x.dtype), {unsigned(blocks_for(r.n, threads))}, {threads}, 0, parts,
         dw.data, bias, is_wide(x.dtype, dw.data ? dw : *db), shares, Long(r.n));
}

}  // namespace

void layer_norm_grad(const Call& c, Launcher& l, const Names&) {
  norm_grads(c, l, c.in[0], c.in[1], c.in[2], c.in[3].data, c.in[4].data, c.out[0], c.out[1], &c.out[2]);
}

void rms_norm(const Call& c, Launcher& l, const Names& names) {
  const View &x = c.in[0], &w = c.in[1], &y = c.out[0];
  const RowShape r(l, rows_of(x), last_of(x), size_bytes(x.dtype), {x.data, y.data});
  if (r.rows == 0) return;
  launch(l, name_in(names, x.dtype), r.grid, r.block, 0, x.data, w.data, is_wide(x.dtype, w), y.data, c.out[1].data,
         Long(r.rows), Long(r.n), r.packed, c.attrs->f[0]);
}

void rms_norm_grad(const Call& c, Launcher& l, const Names&) {
  void* const none = nullptr;
  norm_grads(c, l, c.in[0], c.in[1], c.in[2], none, c.in[3].data, c.out[0], c.out[1], nullptr);
}

namespace {

struct BatchShape {
  Plane plane{};
  Grid grid;
  std::size_t bytes;                      // size of the partial sums
  explicit BatchShape(const View& x) {
    plane.channels = x.shape[1];
    plane.s = x.shape[2];
    plane.count = x.shape[0] * x.shape[2];
    const Long shares = std::clamp<Long>(blocks_for(plane.count, 8192), 1, 64);
    plane.each = blocks_for(plane.count, shares);
    if (plane.count < (Long(1) << 31) && plane.s) plane.by_s = divider_of(unsigned(plane.s));
    grid = {unsigned(plane.channels), unsigned(shares)};
    bytes = std::size_t(plane.channels * shares * 2) * size_bytes(stats_type(x.dtype));
  }
};

}  // namespace

void batch_norm(const Call& c, Launcher& l, const Names& names) {
  const View &x = c.in[0], &w = c.in[1], &b = c.in[2];
  if (x.count() == 0) return;
  const BatchShape s(x);
  void* parts = l.scratch(s.bytes);
  if (!parts) return c.fail("batch_norm: no memory for %zu bytes of partial sums\n"
                            "work on smaller tensors or batches, or free tensors", s.bytes);
  launch(l, name_in(RILLE_NAMES("batch_sums"), x.dtype), s.grid, {threads}, 0, x.data, parts, s.plane);
  launch(l, name_in(names, x.dtype), s.grid, {threads}, 0, x.data, parts, w.data, b.data,
         is_wide(x.dtype, w.data ? w : b), c.out[0].data, c.out[1].data, c.out[2].data, s.plane, c.attrs->f[0]);
}

void batch_norm_grad(const Call& c, Launcher& l, const Names& names) {
  const View &g = c.in[0], &x = c.in[1], &w = c.in[2], &dw = c.out[1], &db = c.out[2];
  if (x.count() == 0) return;
  const BatchShape s(x);
  void* parts = l.scratch(s.bytes);
  if (!parts) return c.fail("batch_norm: no memory for %zu bytes of partial sums\n"
                            "work on smaller tensors or batches, or free tensors", s.bytes);
  launch(l, name_in(RILLE_NAMES("batch_grad_sums"), x.dtype), s.grid, {threads}, 0, g.data, x.data, c.in[3].data, parts,
         s.plane);
  launch(l, name_in(names, x.dtype), s.grid, {threads}, 0, g.data, x.data, parts, w.data,
         is_wide(x.dtype, w.data ? w : dw.data ? dw : db), c.in[3].data, c.in[4].data, c.out[0].data, dw.data, db.data,
         s.plane, c.attrs->f[0]);
}

}  // namespace rille::kernels::cuda
