// Scans along the last dimension of contiguous rows. One thread computes a row, from one end to the other.
#include "kernels/nest.hpp"

namespace rille::kernels::RILLE_ISA {

template <class T, class A>
static void cumsum_as(const Call& c) {
  const View& x = c.in[0];
  const int64_t n = x.shape[x.shape.n - 1], rows = n ? x.count() / n : 0;
  for_stoppable(c, rows, n * 2, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* a = x.ptr<T>() + r * n;
      T* o = c.out[0].ptr<T>() + r * n;
      A sum = 0;
      for (int64_t first = 0; first < n && !c.stopped(); first += look_elements) {
        const int64_t last = n - first < look_elements ? n : first + look_elements;
        if (c.attrs->i[0])
          for (int64_t i = n - 1 - first; i >= n - last; --i) o[i] = T(sum += A(a[i]));
        else
          for (int64_t i = first; i < last; ++i) o[i] = T(sum += A(a[i]));
      }
    }
  });
}

// out[0][i] = in[0][0] + .. + in[0][i]; attrs.i[0] = 1: sums from the end instead. Floats are summed in f64, i64 in i64
void cumsum(const Call& c) {
  if (c.in[0].dtype == DType::i64) return cumsum_as<int64_t, uint64_t>(c);
  RILLE_FLOATS(c.in[0].dtype, cumsum_as<T, double>(c));
}

// The gradient of an element: the product of all elements before it (stored in the output) times that of all after it.
template <class T>
static void prod_grad_as(const Call& c) {
  const View& x = c.in[0];
  const int64_t rows = c.in[1].count(), n = rows ? x.count() / rows : 0;
  for_stoppable(c, rows, n * 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* a = x.ptr<T>() + r * n;
      T* o = c.out[0].ptr<T>() + r * n;
      double before = 1, after = double(c.in[1].ptr<T>()[r]);
      for (int64_t i = 0; i < n; ++i) {
        o[i] = T(before);
        before *= double(a[i]);
      }
      for (int64_t i = n - 1; i >= 0; --i) {
        o[i] = T(double(o[i]) * after);
        after *= double(a[i]);
      }
    }
  });
}

// in: x, contiguous; the gradient of prod, one number per row of x. out: the gradient of x
void prod_grad(const Call& c) { RILLE_FLOATS(c.in[0].dtype, prod_grad_as<T>(c)); }

}  // namespace rille::kernels::RILLE_ISA
