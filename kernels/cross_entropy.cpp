// loss = mean over counted rows of (lse - logit[label]); lse in the element type, the mean in f64, rows in order.
#include "kernels/cross_entropy.hpp"

#include "kernels/nest.hpp"
#include "kernels/rows.hpp"

namespace rille::kernels::RILLE_ISA {

static inline int64_t label_at(const View& v, int64_t i) {
  return v.dtype == DType::i64   ? v.ptr<int64_t>()[i]
         : v.dtype == DType::i32 ? v.ptr<int32_t>()[i]
                                 : v.ptr<uint8_t>()[i];
}

static int64_t counted_rows(const View& labels, int64_t rows, int64_t ignore) {
  int64_t counted = 0;
  for (int64_t r = 0; r < rows; ++r) counted += label_at(labels, r) != ignore;
  return counted;
}

template <class T>
static void forward(const Call& c) {
  const View &x = c.in[0], &labels = c.in[1];
  const int64_t n = x.shape[x.shape.n - 1], rows = labels.count(), ignore = c.attrs->i[0];
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t label = label_at(labels, r);
    if (label != ignore && (label < 0 || label >= n))
      return c.fail("cross_entropy: label %lld at row %lld; there are classes 0 to %lld", (long long)label,
                    (long long)r, (long long)n - 1);
  }
  T* lse = c.out[1].ptr<T>();
  for_share(rows, n * 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x.ptr<T>() + r * n;
      const T m = row_max(row, n);
      lse[r] = m + vlog(row_exp_sum(row, n, m));
    }
  });
  double total = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t label = label_at(labels, r);
    if (label != ignore) total += double(lse[r] - x.ptr<T>()[r * n + label]);
  }
  *c.out[0].ptr<T>() = T(total / double(counted_rows(labels, rows, ignore)));
}

template <class T>
static void backward(const Call& c) {
  const View &x = c.in[1], &labels = c.in[2];
  const int64_t n = x.shape[x.shape.n - 1], rows = labels.count(), ignore = c.attrs->i[0];
  const T g = *c.in[0].ptr<T>() / T(counted_rows(labels, rows, ignore));
  const T* lse = c.in[3].ptr<T>();
  for_share(rows, n * 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x.ptr<T>() + r * n;
      T* o = c.out[0].ptr<T>() + r * n;
      const int64_t label = label_at(labels, r);
      const T factor = label == ignore ? T(0) : g, shift = lse[r];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) o[i] = vexp(row[i] - shift) * factor;
      if (label != ignore) o[label] -= g;
    }
  });
}

void cross_entropy(const Call& c) { RILLE_FLOATS(c.in[0].dtype, forward<T>(c)); }
void cross_entropy_grad(const Call& c) { RILLE_FLOATS(c.in[1].dtype, backward<T>(c)); }

}  // namespace rille::kernels::RILLE_ISA
