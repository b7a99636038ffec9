// Launches of convolutions: which matrices are multiplied, and how the work is divided.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

using Long = long long;

void steps_of(const View& v, long long (&to)[4]) { for (int d = 0; d < 4; ++d) to[d] = v.strides[d]; }

// The geometry from x, weight and y, or from their gradients.
Convolution geometry(const Call& c, const View& x, const View& w, const View& y) {
  Convolution g{};
  g.x = x.data;
  g.weight = w.data;
  g.y = y.data;
  steps_of(x, g.x_step);
  steps_of(w, g.w_step);
  steps_of(y, g.y_step);
  const std::int64_t* a = c.attrs->i;
  for (int k = 0; k < 2; ++k) {
    g.stride[k] = int(a[k]);
    g.padding[k] = int(a[2 + k]);
    g.dilation[k] = int(a[4 + k]);
  }
  g.groups = int(a[6]);
  g.outs = int(w.shape[0] / a[6]);
  g.ins = int(w.shape[1]);
  g.h = int(x.shape[2]);
  g.w = int(x.shape[3]);
  g.oh = int(y.shape[2]);
  g.ow = int(y.shape[3]);
  g.by_window = divider_of(unsigned(w.shape[2] * w.shape[3]));
  g.by_window_width = divider_of(unsigned(w.shape[3]));
  g.by_output = divider_of(unsigned(y.shape[2] * y.shape[3]));
  g.by_output_width = divider_of(unsigned(y.shape[3]));
  g.by_input = divider_of(unsigned(x.shape[2] * x.shape[3]));
  g.by_input_width = divider_of(unsigned(x.shape[3]));
  return g;
}


// Whether what kernels count in 32 bits fits: pixels, an axis with its padding, and window elements of all channels.
bool fits(const Call& c, const View& x, const View& w, const View& y) {
  const auto pixels = [](const View& v) { return v.shape[0] * v.shape[2] * v.shape[3]; };
  if (pixels(x) >= units_max || pixels(y) >= units_max) {
    c.fail("convolution: a batch has more than 2^30 pixels, too many for a CUDA device: use a smaller batch");
    return false;
  }
  const std::int64_t places = std::max(w.shape[0], w.shape[1]) * w.shape[2] * w.shape[3];
  bool axes = true;
  for (int k = 0; k < 2; ++k) axes = axes && x.shape[2 + k] + 2 * c.attrs->i[2 + k] < int_end;
  if (axes && places < int_end) return true;
  c.fail("convolution: a CUDA device takes windows of up to 2^31 numbers, and images of up to 2^31 rows or columns "
         "with their padding");
  return false;
}

void run(Launcher& l, const char* kernel, Convolution& g, std::int64_t rows, std::int64_t columns, std::int64_t inner,
         std::int64_t shares) {
  g.rows = unsigned(rows);
  g.columns = unsigned(columns);
  g.inner = unsigned(inner);
  g.each = unsigned(blocks_for(inner, shares));
  const std::int64_t tiles = blocks_for(rows, 64) * blocks_for(columns, 64);
  launch(l, kernel, {unsigned(tiles), unsigned(g.groups), unsigned(shares)}, {256}, 0, g);
}

bool by_library(const Call& c, Launcher& l, Launcher::Convolved::What what, const View& x, const View& w, const View& y,
                const View* bias = nullptr) {
  return l.convolve({what, &x, &w, &y, bias, c.attrs->i, c.attrs->i[tf32_at] == 1});
}

void zero(Launcher& l, const View& v) {
  if (v.data) l.fill(v.data, 0, std::size_t(v.count()) * size_bytes(v.dtype));
}

}  // namespace

void convolution(const Call& c, Launcher& l, const Names& names) {
  const View &x = c.in[0], &w = c.in[1], &y = c.out[0];
  if (y.count() == 0 || !fits(c, x, w, y)) return;
  if (x.count() && by_library(c, l, Launcher::Convolved::forward, x, w, y, c.n_in == 3 ? &c.in[2] : nullptr)) return;
  Convolution g = geometry(c, x, w, y);
  g.out = y.data;
  if (c.n_in == 3) {
    g.bias = c.in[2].data;
    g.bias_step = c.in[2].strides[0];
  }
  run(l, name_in(names, y.dtype), g, g.outs, y.shape[0] * y.shape[2] * y.shape[3],
      w.shape[1] * w.shape[2] * w.shape[3], 1);
}

void convolution_grad_input(const Call& c, Launcher& l, const Names& names) {
  const View &dy = c.in[0], &w = c.in[1], &dx = c.out[0];
  if (dx.count() == 0 || !fits(c, dx, w, dy)) return;
  if (dy.count() == 0) return zero(l, dx);
  if (by_library(c, l, Launcher::Convolved::input_grad, dx, w, dy)) return;
  Convolution g = geometry(c, dx, w, dy);
  g.out = dx.data;
  run(l, name_in(names, dx.dtype), g, g.ins, dx.shape[0] * dx.shape[2] * dx.shape[3],
      g.outs * w.shape[2] * w.shape[3], 1);
}

namespace {

void weight_grad(const Call& c, Launcher& l, const Names& names) {
  const View &x = c.in[0], &dy = c.in[1], &dw = c.out[0];
  if (by_library(c, l, Launcher::Convolved::weight_grad, x, dw, dy)) return;
  Convolution g = geometry(c, x, dw, dy);
  g.out = dw.data;
  const std::int64_t columns = dw.shape[1] * dw.shape[2] * dw.shape[3], inner = dy.shape[0] * dy.shape[2] * dy.shape[3];
  const std::int64_t tiles = blocks_for(g.outs, 64) * blocks_for(columns, 64) * g.groups;
  // About a thousand blocks, each with at least 512 elements of the inner dimension; depends on the shape alone.
  const std::int64_t wanted = std::clamp<std::int64_t>(std::min(1024 / tiles, inner / 512), 1, 256);
  const std::int64_t shares = blocks_for(inner, blocks_for(inner, wanted));
  if (shares > 1) {
    g.parts = l.scratch(std::size_t(dw.count() * shares) * size_bytes(stats_type(dw.dtype)));
    if (!g.parts) return c.fail("convolution: no memory for %lld partial sums\n"
                                "work on smaller tensors or batches, or free tensors",
                                (long long)(dw.count() * shares));
  }
  run(l, name_in(names, dw.dtype), g, g.outs, columns, inner, shares);
  if (shares > 1)
    launch(l, name_in(RILLE_NAMES("fold_parts"), dw.dtype), grid_for(l, dw.count()), {threads}, 0, g.parts, dw.data,
           Long(dw.count()), int(shares));
}

}  // namespace

void convolution_grad_weight(const Call& c, Launcher& l, const Names& names) {
  const View &x = c.in[0], &dy = c.in[1], &dw = c.out[0];
  const View* const db = c.n_out == 2 && c.out[1].data ? &c.out[1] : nullptr;
  if (dw.count() == 0 || !fits(c, x, dw, dy)) return;
  if (dy.count() == 0 || x.count() == 0) {
    zero(l, dw);
    if (db) zero(l, *db);
    return;
  }
  weight_grad(c, l, names);
  if (!db) return;
  View by_channel = dy;                           // viewed as [o, n, h, w], to sum over all but the first dimension
  std::swap(by_channel.shape[0], by_channel.shape[1]);
  std::swap(by_channel.strides[0], by_channel.strides[1]);
  Attrs attrs;
  attrs.i[0] = 3;
  Call rows = c;
  rows.in = &by_channel;
  rows.n_in = 1;
  rows.out = db;
  rows.n_out = 1;
  rows.attrs = &attrs;
  sum(rows, l, RILLE_NAMES("sum"));
}

}  // namespace rille::kernels::cuda
