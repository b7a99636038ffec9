// Rotary position embedding (Su et al. 2021): rotates pairs of each row [.., t, d] by the angles of position t. One
// thread computes a row.
#include "kernels/nest.hpp"

namespace rille::kernels::RILLE_ISA {

template <class T>
static void turn_row(const T* __restrict x, const T* __restrict cos, const T* __restrict sin, T* __restrict y,
                     int64_t half, T sign, bool pairs) {
  if (pairs) {
    for (int64_t i = 0; i < half; ++i) {
      const T a = x[2 * i], b = x[2 * i + 1], s = sign * sin[i];
      y[2 * i] = a * cos[i] - b * s;
      y[2 * i + 1] = b * cos[i] + a * s;
    }
  } else {
    for (int64_t i = 0; i < half; ++i) {
      const T a = x[i], b = x[half + i], s = sign * sin[i];
      y[i] = a * cos[i] - b * s;
      y[half + i] = b * cos[i] + a * s;
    }
  }
}

// in: x contiguous [.., t, d], cos and sin contiguous [t, d/2]; out like x. The pairs are (i, i + d/2), or (2i, 2i + 1)
// if attrs.i[0] = 1. attrs.i[1] = 1: rotates back, which computes the gradient.
void rope(const Call& c) {
  const View& x = c.in[0];
  const int64_t d = x.shape[x.shape.n - 1], t = x.shape[x.shape.n - 2], half = d / 2, rows = d ? x.count() / d : 0;
  RILLE_FLOATS(x.dtype, for_stoppable(c, rows, d * 2, [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   const int64_t at = r % t * half;
                   turn_row(x.ptr<T>() + r * d, c.in[1].ptr<T>() + at, c.in[2].ptr<T>() + at, c.out[0].ptr<T>() + r * d,
                            half, T(c.attrs->i[1] ? -1 : 1), c.attrs->i[0] == 1);
                 }
               }));
}

}  // namespace rille::kernels::RILLE_ISA
