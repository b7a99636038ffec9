// Launches of matrix products: by a library if the launcher has one, else by the kernel in matmul.cu.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

void matmul(const Call& c, Launcher& l, const Names& names) {
  const View &a = c.in[0], &b = c.in[1], &out = c.out[0];
  const int r = out.shape.n;
  if (out.count() == 0) return;
  if (a.shape[r - 1] != 0) {
    const Launcher::Product wanted{&a, &b, c.n_in == 3 ? &c.in[2] : nullptr, &out, false,
                                   c.attrs->i[tf32_at] == 1};
    if (l.product(wanted)) return;
  }
  Product p{};
  p.a = a.data;
  p.b = b.data;
  p.bias = c.n_in == 3 ? c.in[2].data : nullptr;
  p.out = out.data;
  p.m = out.shape[r - 2];
  p.n = out.shape[r - 1];
  p.k = a.shape[r - 1];
  p.a_row = a.strides[r - 2];
  p.a_column = a.strides[r - 1];
  p.b_row = b.strides[r - 2];
  p.b_column = b.strides[r - 1];
  p.batches = 1;
  for (int d = r - 3; d >= 0; --d) {              // the fastest dimension first
    p.size[p.rank] = out.shape[d];
    p.a_batch[p.rank] = a.strides[d];
    p.b_batch[p.rank++] = b.strides[d];
    p.batches *= out.shape[d];
  }
  const std::int64_t tiles = blocks_for(p.m, 64) * blocks_for(p.n, 64);
  launch(l, name_in(names, out.dtype), {unsigned(tiles), unsigned(std::min<std::int64_t>(p.batches, 65535))}, {256},
         0, p);
}

// One library call, which applies the activation before rounding the sum; without a library, the product and then the
// activation.
void matmul_activated(const Call& c, Launcher& l, const Names&) {
  const View& before = c.out[c.n_out - 1];
  const View &a = c.in[0], &b = c.in[1];
  const auto activation = Activation(c.attrs->i[0]);
  if (before.count() == 0) return;
  if (a.shape[a.shape.n - 1] != 0) {
    const Launcher::Product wanted{&a, &b, c.n_in == 3 ? &c.in[2] : nullptr, &c.out[0], false,
                                   c.attrs->i[tf32_at] == 1, activation, c.n_out == 2 ? &before : nullptr};
    if (l.product(wanted)) return;
  }
  Call one = c;
  one.out = &before;
  one.n_out = 1;
  static constexpr Names of_relu = RILLE_NAMES("relu"), of_gelu = RILLE_NAMES("gelu");
  matmul(one, l, RILLE_NAMES("matmul"));
  one = c;
  one.in = &before;
  one.n_in = one.n_out = 1;
  unary(one, l, activation == Activation::relu ? of_relu : of_gelu);
}

}  // namespace rille::kernels::cuda
