// Pooling over windows of the last two dimensions of contiguous [n, c, h, w]. attrs.i: window (h, w), stride (h, w),
// padding (h, w), dilation (h, w). One thread computes a plane.
#include <string.h>

#include "kernels/nest.hpp"

namespace rille::kernels::RILLE_ISA {

// The part [begin, end) of a window that lies inside an axis, by `step` (the dilation); places: its size with padding.
struct Span {
  int64_t begin, end, step, places;
};

static inline Span span(const Attrs& a, int axis, int64_t at, int64_t size, int64_t outputs) {
  if (a.f[1] == 1) {
    const int64_t begin = at * size / outputs, end = ((at + 1) * size + outputs - 1) / outputs;
    return {begin, end, 1, end - begin};
  }
  const int64_t window = a.i[axis], step = a.i[6 + axis], pad = a.i[4 + axis];
  int64_t begin = at * a.i[2 + axis] - pad, end = begin + (window - 1) * step + 1;
  const int64_t places = end < size + pad ? end - begin : size + pad - begin;
  if (begin < 0) begin += (-begin + step - 1) / step * step;
  return {begin, end < size ? end : size, step, places};
}

// Calls each(image plane, pooled plane, row, column, the window) for every output element.
template <class F>
static void each_window(const Call& c, const View& image, const View& pooled, const F& each) {
  const int64_t h = image.shape[2], w = image.shape[3], oh = pooled.shape[2], ow = pooled.shape[3];
  for_stoppable(c, image.shape[0] * image.shape[1], h * w * 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = 0; i < oh; ++i) {
        const Span rows = span(*c.attrs, 0, i, h, oh);
        for (int64_t j = 0; j < ow; ++j) each(p * h * w, (p * oh + i) * ow + j, rows, span(*c.attrs, 1, j, w, ow), w);
      }
  });
}

template <class T>
static void max_pool_as(const Call& c) {
  each_window(c, c.in[0], c.out[0], [&](int64_t plane, int64_t o, const Span& rows, const Span& columns, int64_t w) {
    const T* x = c.in[0].ptr<T>() + plane;
    int64_t best = rows.begin * w + columns.begin;
    for (int64_t i = rows.begin; i < rows.end; i += rows.step)
      for (int64_t j = columns.begin; j < columns.end; j += columns.step) {
        const int64_t at = i * w + j;
        if (x[at] > x[best] || (x[at] != x[at] && x[best] == x[best])) best = at;
      }
    c.out[0].ptr<T>()[o] = x[best];
    c.out[1].ptr<int32_t>()[o] = int32_t(best);
  });
}
// in: x; out: y, and the index of each maximum in its plane, i32. NaN counts as the largest number
void max_pool(const Call& c) { RILLE_FLOATS(c.in[0].dtype, max_pool_as<T>(c)); }

template <class T>
static void clear(const View& v) {
  memset(v.data, 0, size_t(v.count()) * sizeof(T));
}

template <class T>
static void max_pool_grad_as(const Call& c) {
  clear<T>(c.out[0]);
  const View &dx = c.out[0], &g = c.in[0];
  const int64_t plane = dx.shape[2] * dx.shape[3], each = g.shape[2] * g.shape[3];
  for_stoppable(c, dx.shape[0] * dx.shape[1], plane, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin * each; o < end * each; ++o)
      dx.ptr<T>()[o / each * plane + c.in[1].ptr<int32_t>()[o]] += g.ptr<T>()[o];
  });
}
// in: gradient of y, indices; out: gradient of x
void max_pool_grad(const Call& c) { RILLE_FLOATS(c.out[0].dtype, max_pool_grad_as<T>(c)); }

static inline int64_t inside(const Span& s) { return (s.end - s.begin + s.step - 1) / s.step; }
static inline double share_of(const Call& c, const Span& rows, const Span& columns) {
  const bool all = c.attrs->f[0] == 1;
  return 1.0 / double((all ? rows.places : inside(rows)) * (all ? columns.places : inside(columns)));
}

template <class T>
static void avg_pool_as(const Call& c) {
  each_window(c, c.in[0], c.out[0], [&](int64_t plane, int64_t o, const Span& rows, const Span& columns, int64_t w) {
    T sum = 0;
    for (int64_t i = rows.begin; i < rows.end; ++i)
      for (int64_t j = columns.begin; j < columns.end; ++j) sum += c.in[0].ptr<T>()[plane + i * w + j];
    c.out[0].ptr<T>()[o] = T(double(sum) * share_of(c, rows, columns));
  });
}
// attrs.f[0] = 1: padding counts as zeros. attrs.f[1] = 1: adaptive, so the windows follow from the sizes of in and
// out. in: x; out: y
void avg_pool(const Call& c) { RILLE_FLOATS(c.in[0].dtype, avg_pool_as<T>(c)); }

template <class T>
static void avg_pool_grad_as(const Call& c) {
  clear<T>(c.out[0]);
  each_window(c, c.out[0], c.in[0], [&](int64_t plane, int64_t o, const Span& rows, const Span& columns, int64_t w) {
    const T each = T(double(c.in[0].ptr<T>()[o]) * share_of(c, rows, columns));
    for (int64_t i = rows.begin; i < rows.end; ++i)
      for (int64_t j = columns.begin; j < columns.end; ++j) c.out[0].ptr<T>()[plane + i * w + j] += each;
  });
}
// in: gradient of y; out: gradient of x
void avg_pool_grad(const Call& c) { RILLE_FLOATS(c.out[0].dtype, avg_pool_grad_as<T>(c)); }

}  // namespace rille::kernels::RILLE_ISA
