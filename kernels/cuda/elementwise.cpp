// Launches of element-wise operations.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

void unary(const Call& c, Launcher& l, const Names& names) {
  const DType t = c.in[0].dtype;
  const View* const views[2] = {&c.in[0], &c.out[0]};
  launch_windows<2>(l, name_in(names, t), views, c, pack_of(size_bytes(t)));
}

static void two(const Call& c, Launcher& l, const char* kernel) {
  const DType t = c.in[0].dtype;
  const bool left = c.n_in == 1 && c.attrs->i[0] == 1;
  View number = c.in[0];                          // only its shape is used, not its data
  for (int d = 0; d < number.strides.n; ++d) number.strides[d] = 0;
  const View *a = left ? &number : &c.in[0], *b = c.n_in == 2 ? &c.in[1] : left ? &c.in[0] : &number;
  const View* const views[3] = {a, b, &c.out[0]};
  launch_windows<3>(l, kernel, views, c, pack_of(size_bytes(t)), c.n_in == 2 ? -1 : left ? 0 : 1);
}

void binary(const Call& c, Launcher& l, const Names& names) { two(c, l, name_in(names, c.in[0].dtype)); }

void bits(const Call& c, Launcher& l, const Names& names) {
  const DType t = c.in[0].dtype;
  two(c, l, name_in(names, size_bytes(t) == 1 ? DType::u8 : t));
}

void bits_not(const Call& c, Launcher& l, const Names& names) {
  const DType t = c.in[0].dtype;
  const View* const views[2] = {&c.in[0], &c.out[0]};
  launch_windows<2>(l, t == DType::boolean ? "logical_not_u8" : name_in(names, size_bytes(t) == 1 ? DType::u8 : t),
                    views, c, pack_of(size_bytes(t)));
}

void divided(const Call& c, Launcher& l, const Names& names) {
  // The number is known here, so no kernel needs to check it.
  if (c.n_in == 1 && c.attrs->i[0] == 0 && c.attrs->f[0] == 0 && !is_floating(c.in[0].dtype)) {
    const bool rest = std::strncmp(names.of[0], "remainder", 9) == 0;
    return c.fail("%s: %s divided by zero", rest ? "remainder" : "floor_divide", name_of(c.in[0].dtype));
  }
  binary(c, l, names);
}

void onto(const Call& c, Launcher& l, const Names& names) {
  const DType t = c.out[0].dtype;
  const View* const views[3] = {&c.out[0], &c.in[0], &c.out[0]};
  launch_windows<3>(l, name_in(names, t), views, c, pack_of(size_bytes(t)));
}

void scaled(const Call& c, Launcher& l, const Names&) {
  const DType t = c.out[0].dtype;
  View number = c.out[0];
  for (int d = 0; d < number.strides.n; ++d) number.strides[d] = 0;
  const View* const views[3] = {&c.out[0], c.n_in ? &c.in[0] : &number, &c.out[0]};
  launch_windows<3>(l, name_in(RILLE_NAMES("mul"), t), views, c, pack_of(size_bytes(t)), c.n_in ? -1 : 1);
}

}  // namespace rille::kernels::cuda
