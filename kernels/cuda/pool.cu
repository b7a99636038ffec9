// Pooling of contiguous planes. One thread computes an output. For gradients one thread computes an input: it adds, in
// order, the gradients of the windows that contain the input.
#include "kernels/cuda/device.h"

namespace rille::kernels::cuda {

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
// The windows that may contain index `at` of an axis: [first, last].
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
