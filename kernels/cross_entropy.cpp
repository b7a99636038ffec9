// Softmax and negative log-likelihood in one; the probabilities are never stored. Rows with the label attrs.i[0] are
// ignored. attrs.f[0]: label smoothing, spread evenly over all classes.
//
// loss = mean over rows that are not ignored of (lse - (1 - s) logit[label] - s mean(logits)), s the label smoothing;
// means in f64, rows in order. lse is stored in two parts, the largest logit and log(sum(e^(logit - largest))): if
// logits are large, the sum of both would lose the digits of the second part.
#include "kernels/ids.hpp"
#include "kernels/nest.hpp"
#include "kernels/rows.hpp"

namespace rille::kernels::RILLE_ISA {

static int64_t counted_rows(const View& labels, int64_t rows, int64_t ignore) {
  int64_t counted = 0;
  for (int64_t r = 0; r < rows; ++r) counted += id_at(labels, r) != ignore;
  return counted;
}

template <class T>
static double row_mean(const T* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += double(x[i]);
  return sum / double(n);
}

template <class T>
static void forward(const Call& c) {
  const View &x = c.in[0], &labels = c.in[1];
  const int64_t n = x.shape[x.shape.n - 1], rows = labels.count(), ignore = c.attrs->i[0];
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t label = id_at(labels, r);
    if (label != ignore && (label < 0 || label >= n))
      return c.fail(
          "cross_entropy: label %lld at row %lld; there are classes 0 to %lld\n"
          "labels and rows count from 0; rows whose label is ignore_index, -100, do not count",
          (long long)label, (long long)r, (long long)n - 1);
  }
  T* parts = c.out[1].ptr<T>();
  const double smooth = c.attrs->f[0];
  double* losses = static_cast<double*>(c.lane->scratch(size_t(rows) * sizeof(double)));
  if (!losses && rows)
    return c.fail("cross_entropy: no memory for %lld losses\nwork on smaller tensors or batches, or free tensors",
                  (long long)rows);
  for_stoppable(c, rows, n * 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x.ptr<T>() + r * n;
      const T m = row_max(row, n), rest = vlog(row_exp_sum(row, n, m));
      parts[2 * r] = m;
      parts[2 * r + 1] = rest;
      const int64_t label = id_at(labels, r);
      losses[r] = label == ignore ? 0 : double(m - row[label]) + double(rest);
      if (smooth != 0 && label != ignore) losses[r] += smooth * (double(row[label]) - row_mean(row, n));
    }
  });
  double total = 0;
  for (int64_t r = 0; r < rows; ++r) total += losses[r];
  *c.out[0].ptr<T>() = T(total / double(counted_rows(labels, rows, ignore)));
}

template <class T>
static void backward(const Call& c) {
  const View &x = c.in[1], &labels = c.in[2];
  const int64_t n = x.shape[x.shape.n - 1], rows = labels.count(), ignore = c.attrs->i[0];
  const T g = *c.in[0].ptr<T>() / T(counted_rows(labels, rows, ignore));
  const T smooth = T(c.attrs->f[0]), every = smooth / T(n);
  const T* parts = c.in[3].ptr<T>();
  for_stoppable(c, rows, n * 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x.ptr<T>() + r * n;
      T* o = c.out[0].ptr<T>() + r * n;
      const int64_t label = id_at(labels, r);
      const T factor = label == ignore ? T(0) : g, m = parts[2 * r], rest = parts[2 * r + 1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) o[i] = (vexp(row[i] - m - rest) - every) * factor;
      if (label != ignore) o[label] -= g * (T(1) - smooth);
    }
  });
}

// in: logits [rows.., c], labels [rows..]; out: mean loss (0-d), the two parts of each row's log-sum-exp [rows.., 2]
void cross_entropy(const Call& c) { RILLE_FLOATS(c.in[0].dtype, forward<T>(c)); }
// in: gradient (0-d), logits, labels, the log-sum-exp parts; out: gradient of the logits
void cross_entropy_grad(const Call& c) { RILLE_FLOATS(c.in[1].dtype, backward<T>(c)); }

}  // namespace rille::kernels::RILLE_ISA
