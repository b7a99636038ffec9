// Convolution of [n, c, h, w] with [o, c / groups, kh, kw] as a product of matrices that are never written down.
// blockIdx.y is the group, blockIdx.z a share of the inner dimension (gradients of weights, whose inner dimension is
// the batch); the shares are added up in order.
#include "kernels/cuda/tile.h"

namespace rille::kernels::cuda {

struct Pixel { int n, i, j; };
DEVICE Pixel pixel_of(unsigned at, const Divider& area, const Divider& width) {
  const unsigned n = divide(at, area), rest = at - n * area.divisor, i = divide(rest, width);
  return {int(n), int(i), int(rest - i * width.divisor)};
}
// An element of [.., .., .., ..] by its four places.
template <class T> DEVICE Wide<T> element(const void* from, const long long (&step)[4], int a, int b, int c, int d) {
  return widen(static_cast<const T*>(from)[a * step[0] + b * step[1] + c * step[2] + d * step[3]]);
}
// x where the kernel's place (p, q) of output (i, j) lies; 0 in the padding.
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

// Each pass: rows x inner times inner x columns. A Pixel of the kernel is (channel, row, column of the window).
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
    const Pixel w = pixel_of(k, c.by_window, c.by_window_width);        // w.n is the output's channel
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

// -- pooling of contiguous planes: a thread for each output; for gradients a thread for each input, which looks at the
// windows that it stands in, in their order
struct Span { int begin, end, step, places; };
DEVICE Span span_of(const Pooling& p, int axis, int at) {
  const int size = p.size[axis], outputs = p.outputs[axis];
  if (p.adaptive) {
    const int begin = int(Long(at) * size / outputs), end = int((Long(at + 1) * size + outputs - 1) / outputs);
    return {begin, end, 1, end - begin};
  }
  const int step = p.dilation[axis], pad = p.padding[axis];
  int begin = at * p.stride[axis] - pad;
  const int end = begin + (p.window[axis] - 1) * step + 1, places = end < size + pad ? end - begin : size + pad - begin;
  if (begin < 0) begin += (-begin + step - 1) / step * step;
  return {begin, end < size ? end : size, step, places};
}
DEVICE double share_of(const Pooling& p, const Span& rows, const Span& columns) {
  const int r = p.padding_counts ? rows.places : (rows.end - rows.begin + rows.step - 1) / rows.step;
  const int c = p.padding_counts ? columns.places : (columns.end - columns.begin + columns.step - 1) / columns.step;
  return 1.0 / (double(r) * double(c));
}
// The windows that place `at` of an axis may stand in: [first, last].
DEVICE void windows_of(const Pooling& p, int axis, int at, int& first, int& last) {
  if (p.adaptive) {
    first = int(Long(at) * p.outputs[axis] / p.size[axis]) - 1;
    last = int(Long(at + 1) * p.outputs[axis] / p.size[axis]) + 1;
  } else {
    const int reach = at + p.padding[axis] - (p.window[axis] - 1) * p.dilation[axis];
    first = reach <= 0 ? 0 : (reach + p.stride[axis] - 1) / p.stride[axis];
    last = (at + p.padding[axis]) / p.stride[axis];
  }
  if (first < 0) first = 0;
  if (last >= p.outputs[axis]) last = p.outputs[axis] - 1;
}
template <class Body> DEVICE void each_place(Long planes, const int (&size)[2], const Body& body) {
  const Long area = Long(size[0]) * size[1], stride = Long(gridDim.x) * blockDim.x;
  for (Long at = Long(blockIdx.x) * blockDim.x + threadIdx.x; at < planes * area; at += stride) {
    const Long plane = at / area;
    const int rest = int(at - plane * area), i = rest / size[1];
    body(at, plane, i, rest - i * size[1]);
  }
}

template <class T> DEVICE void max_pool(const T* x, T* y, int* places, const Pooling& p) {
  each_place(p.planes, p.outputs, [&](Long at, Long plane, int i, int j) {
    const Span rows = span_of(p, 0, i), columns = span_of(p, 1, j);
    const T* from = x + plane * p.size[0] * p.size[1];
    int best = rows.begin * p.size[1] + columns.begin;
    Wide<T> value = widen(from[best]);
    for (int r = rows.begin; r < rows.end; r += rows.step)
      for (int c = columns.begin; c < columns.end; c += columns.step) {
        const Wide<T> v = widen(from[r * p.size[1] + c]);
        if (!(v > value || (v != v && value == value))) continue;
        best = r * p.size[1] + c;
        value = v;
      }
    y[at] = narrow<T>(value);
    places[at] = best;
  });
}
template <class T> DEVICE void max_pool_grad(const T* g, const int* places, T* dx, const Pooling& p) {
  each_place(p.planes, p.size, [&](Long at, Long plane, int i, int j) {
    int first_row, last_row, first_column, last_column;
    windows_of(p, 0, i, first_row, last_row);
    windows_of(p, 1, j, first_column, last_column);
    Wide<T> sum = 0;
    for (int r = first_row; r <= last_row; ++r)
      for (int c = first_column; c <= last_column; ++c) {
        const Long o = (plane * p.outputs[0] + r) * p.outputs[1] + c;
        if (places[o] == i * p.size[1] + j) sum += widen(g[o]);
      }
    dx[at] = narrow<T>(sum);
  });
}
template <class T> DEVICE void avg_pool(const T* x, T* y, const Pooling& p) {
  each_place(p.planes, p.outputs, [&](Long at, Long plane, int i, int j) {
    const Span rows = span_of(p, 0, i), columns = span_of(p, 1, j);
    const T* from = x + plane * p.size[0] * p.size[1];
    Wide<T> sum = 0;
    for (int r = rows.begin; r < rows.end; ++r)
      for (int c = columns.begin; c < columns.end; ++c) sum += widen(from[r * p.size[1] + c]);
    y[at] = narrow<T>(Wide<T>(double(sum) * share_of(p, rows, columns)));
  });
}
template <class T> DEVICE void avg_pool_grad(const T* g, T* dx, const Pooling& p) {
  each_place(p.planes, p.size, [&](Long at, Long plane, int i, int j) {
    int first_row, last_row, first_column, last_column;
    windows_of(p, 0, i, first_row, last_row);
    windows_of(p, 1, j, first_column, last_column);
    Wide<T> sum = 0;
    for (int r = first_row; r <= last_row; ++r) {
      const Span rows = span_of(p, 0, r);
      if (i < rows.begin || i >= rows.end) continue;
      for (int c = first_column; c <= last_column; ++c) {
        const Span columns = span_of(p, 1, c);
        if (j < columns.begin || j >= columns.end) continue;
        const Long o = (plane * p.outputs[0] + r) * p.outputs[1] + c;
        sum += Wide<T>(double(widen(g[o])) * share_of(p, rows, columns));
      }
    }
    dx[at] = narrow<T>(sum);
  });
}
#define POOL(op, name, T)                                                                                          \
  ENTRY(max_pool_##name, 256, const T* x, T* y, int* places, GIVEN Pooling p) { max_pool<T>(x, y, places, p); }    \
  ENTRY(max_pool_grad_##name, 256, const T* g, const int* places, T* dx, GIVEN Pooling p) {                        \
    max_pool_grad<T>(g, places, dx, p);                                                                            \
  }                                                                                                                \
  ENTRY(avg_pool_##name, 256, const T* x, T* y, GIVEN Pooling p) { avg_pool<T>(x, y, p); }                         \
  ENTRY(avg_pool_grad_##name, 256, const T* g, T* dx, GIVEN Pooling p) { avg_pool_grad<T>(g, dx, p); }
FOR_FLOATS(POOL, pool)

}  // namespace rille::kernels::cuda
