// Convolution of [n, c, h, w] with [o, c / groups, kh, kw] as a product of matrices that are never stored.
// blockIdx.y is the group. blockIdx.z is a share of the inner dimension, used for gradients of weights, whose inner
// dimension is the batch and pixels; the shares are added in order.
#include "kernels/cuda/tile.h"

namespace rille::kernels::cuda {

struct Pixel { int n, i, j; };
DEVICE Pixel pixel_of(unsigned at, const Divider& area, const Divider& width) {
  const unsigned n = divide(at, area), rest = at - n * area.divisor, i = divide(rest, width);
  return {int(n), int(i), int(rest - i * width.divisor)};
}
// An element of a 4-d tensor by its four indices.
template <class T> DEVICE Wide<T> element(const void* from, const long long (&step)[4], int a, int b, int c, int d) {
  return widen(static_cast<const T*>(from)[a * step[0] + b * step[1] + c * step[2] + d * step[3]]);
}
// The element of x under the kernel's element (p, q) for output (i, j); 0 in the padding.
template <class T> DEVICE Wide<T> seen(const Convolution& c, int channel, const Pixel& at, int p, int q) {
  const int h = at.i * c.stride[0] - c.padding[0] + p * c.dilation[0];
  const int v = at.j * c.stride[1] - c.padding[1] + q * c.dilation[1];
  if (h < 0 || v < 0 || h >= c.h || v >= c.w) return 0;
  return element<T>(c.x, c.x_step, at.n, channel, h, v);
}
template <class T> DEVICE Wide<T> weight(const Convolution& c, int o, const Pixel& k) {
  return element<T>(c.weight, c.w_step, o, k.n, k.i, k.j);
}
template <class T> DEVICE Wide<T> result(const Convolution& c, int o, const Pixel& at) {
  return element<T>(c.y, c.y_step, at.n, o, at.i, at.j);
}

// Each pass is a product: rows x inner times inner x columns. A Pixel of the kernel is (channel, window row, column).
template <class T> struct Forward {
  DEVICE Wide<T> left(const Convolution& c, int g, unsigned row, unsigned k) {
    return weight<T>(c, g * c.outs + int(row), pixel_of(k, c.by_window, c.by_window_width));
  }
  DEVICE Wide<T> right(const Convolution& c, int g, unsigned k, unsigned column) {
    const Pixel w = pixel_of(k, c.by_window, c.by_window_width);
    return seen<T>(c, g * c.ins + w.n, pixel_of(column, c.by_output, c.by_output_width), w.i, w.j);
  }
  DEVICE void store(const Convolution& c, int g, unsigned row, unsigned column, Wide<T> sum) {
    const int o = g * c.outs + int(row);
    const unsigned n = divide(column, c.by_output), rest = column - n * c.by_output.divisor;
    if (c.bias) sum += widen(static_cast<const T*>(c.bias)[o * c.bias_step]);
    static_cast<T*>(c.out)[(Long(n) * c.groups * c.outs + o) * c.by_output.divisor + rest] = narrow<T>(sum);
  }
};
template <class T> struct ToInput {
  DEVICE Wide<T> left(const Convolution& c, int g, unsigned row, unsigned k) {
    const Pixel w = pixel_of(k, c.by_window, c.by_window_width);        // w.n is the output channel
    return weight<T>(c, g * c.outs + w.n, {int(row), w.i, w.j});
  }
  DEVICE Wide<T> right(const Convolution& c, int g, unsigned k, unsigned column) {
    const Pixel w = pixel_of(k, c.by_window, c.by_window_width), at = pixel_of(column, c.by_input, c.by_input_width);
    const int i = at.i + c.padding[0] - w.i * c.dilation[0], j = at.j + c.padding[1] - w.j * c.dilation[1];
    if (i < 0 || j < 0 || i % c.stride[0] || j % c.stride[1]) return 0;
    if (i / c.stride[0] >= c.oh || j / c.stride[1] >= c.ow) return 0;
    return result<T>(c, g * c.outs + w.n, {at.n, i / c.stride[0], j / c.stride[1]});
  }
  DEVICE void store(const Convolution& c, int g, unsigned row, unsigned column, Wide<T> sum) {
    const unsigned n = divide(column, c.by_input), rest = column - n * c.by_input.divisor;
    static_cast<T*>(c.out)[(Long(n) * c.groups * c.ins + g * c.ins + row) * c.by_input.divisor + rest] = narrow<T>(sum);
  }
};
template <class T> struct ToWeight {
  DEVICE Wide<T> left(const Convolution& c, int g, unsigned row, unsigned k) {
    return result<T>(c, g * c.outs + int(row), pixel_of(k, c.by_output, c.by_output_width));
  }
  DEVICE Wide<T> right(const Convolution& c, int g, unsigned k, unsigned column) {
    const Pixel w = pixel_of(column, c.by_window, c.by_window_width);
    return seen<T>(c, g * c.ins + w.n, pixel_of(k, c.by_output, c.by_output_width), w.i, w.j);
  }
  DEVICE void store(const Convolution& c, int g, unsigned row, unsigned column, Wide<T> sum) {
    const Long at = (Long(g) * c.outs + row) * c.columns + column;
    if (gridDim.z == 1) static_cast<T*>(c.out)[at] = narrow<T>(sum);
    else static_cast<Wide<T>*>(c.parts)[Long(blockIdx.z) * c.groups * c.outs * c.columns + at] = sum;
  }
};

template <class T, class Pass> DEVICE void convolve(const Convolution& c) {
  typedef Wide<T> C;
  __shared__ TileSide<C> left;
  __shared__ TileSide<C> right;
  const unsigned across = (c.columns + 63) / 64, row = blockIdx.x / across * 64, column = blockIdx.x % across * 64;
  const unsigned begin = blockIdx.z * c.each, end = begin + c.each < c.inner ? begin + c.each : c.inner;
  const int g = int(blockIdx.y);
  const unsigned at = threadIdx.x % 64;
  C sum[4][4] = {};
  for (unsigned first = begin; first < end; first += 16) {
#pragma unroll
    for (int pass = 0; pass < 4; ++pass) {
      const unsigned i = threadIdx.x / 64 + 4 * pass, k = first + i;
      left[i][at] = k < end && row + at < c.rows ? Pass::left(c, g, row + at, k) : C(0);
      right[i][at] = k < end && column + at < c.columns ? Pass::right(c, g, k, column + at) : C(0);
    }
    add_tile(sum, left, right);
  }
  each_of_tile(sum, Long(c.rows) - row, Long(c.columns) - column, [&](int down, int over, C x) {
    Pass::store(c, g, row + unsigned(down), column + unsigned(over), x);
  });
}

template <class T> DEVICE void fold_parts(const Wide<T>* parts, T* out, Long count, int shares) {
  const Long stride = Long(gridDim.x) * blockDim.x;
  for (Long i = Long(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    Wide<T> sum = 0;
    for (int s = 0; s < shares; ++s) sum += parts[s * count + i];
    out[i] = narrow<T>(sum);
  }
}

#define CONVOLUTION(op, name, T)                                                                               \
  ENTRY(convolution_##name, 256, GIVEN Convolution c) { convolve<T, Forward<T>>(c); }                          \
  ENTRY(convolution_grad_input_##name, 256, GIVEN Convolution c) { convolve<T, ToInput<T>>(c); }               \
  ENTRY(convolution_grad_weight_##name, 256, GIVEN Convolution c) { convolve<T, ToWeight<T>>(c); }             \
  ENTRY(fold_parts_##name, 256, const Wide<T>* parts, T* out, Long count, int shares) {                        \
    fold_parts<T>(parts, out, count, shares);                                                                  \
  }
FOR_FLOATS(CONVOLUTION, convolution)

}  // namespace rille::kernels::cuda
