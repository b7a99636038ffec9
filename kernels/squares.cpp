// As a sum (kernels/reduce.cpp): blocks of 4096 elements in their own type, half types in f32; f64 across the blocks,
// which do not depend on the number of threads. A block's elements are read twice while they are in the first cache.
#include "kernels/squares.hpp"

#include "kernels/parts.hpp"
#include "kernels/sums.hpp"

namespace rille::kernels::RILLE_ISA {

template <class S, bool centred>
static inline Moments block_squares(const S* x, int64_t n, int64_t s) {
  Computed<S> buffer[sum_block];
  const Computed<S>* const v = computed(x, s, n, buffer);
  if (centred) return moments_of(v, n);
  return {double(n), 0, double(sum_of<Computed<S>>(n, [=](int64_t i) { return v[i] * v[i]; }))};
}

template <bool centred>
static inline void give(const Call& c, int64_t o, double squares, double mean) {
  put_element(c.out[0], o, squares * c.attrs->f[0]);
  if (centred) put_element(c.out[1], o, mean);
}

template <class S, bool centred>
static bool squares_of_all(const Call& c, const Parts& p) {
  if (p.n_outer != 1 || !p.dense() || p.n_reduced <= 4 * sum_block) return false;
  const int64_t blocks = (p.n_reduced + sum_block - 1) / sum_block;
  Moments* partial = static_cast<Moments*>(c.lane->scratch(size_t(blocks) * sizeof(Moments)));
  if (!partial) return false;
  const S* x = c.in[0].ptr<S>();
  for_share(blocks, sum_block, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t left = p.n_reduced - b * sum_block;
      partial[b] = block_squares<S, centred>(x + b * sum_block, left < sum_block ? left : sum_block, 1);
    }
  });
  Moments total;
  for (int64_t b = 0; b < blocks; ++b) total.join(partial[b]);
  give<centred>(c, 0, total.squares, total.mean);
  return true;
}

// Two readings: the columns' means, then their squares.
template <class S, bool centred>
static bool squares_of_columns(const Call& c, const Parts& p) {
  using T = Computed<S>;
  return over_columns(p, [&](int64_t first, int64_t n) {
    const S* x = c.in[0].ptr<S>() + first;
    double mean[widest_tile] = {}, total[widest_tile];
    T middle[widest_tile] = {};
    if (centred) {
      column_sums<S, T>(x, p.nest, n, mean, [](S v, int64_t) { return widen(v); });
      for (int64_t j = 0; j < n; ++j) middle[j] = T(mean[j] /= double(p.n_reduced));
    }
    column_sums<S, T>(x, p.nest, n, total, [&](S v, int64_t j) {
      const T away = centred ? widen(v) - middle[j] : widen(v);
      return away * away;
    });
    for (int64_t j = 0; j < n; ++j) give<centred>(c, first + j, total[j], mean[j]);
  });
}

template <class S, bool centred>
static void squares_as(const Call& c) {
  const Parts p(c);
  if (squares_of_all<S, centred>(c, p) || squares_of_columns<S, centred>(c, p)) return;
  const S* x = c.in[0].ptr<S>();
  for_share(p.n_outer, p.n_reduced * 2, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      Moments total;
      reduced_rows(p.nest, p.offset(o), [&](int64_t at, int64_t n, int64_t s) {
        for (int64_t i = 0; i < n; i += sum_block)
          total.join(block_squares<S, centred>(x + at + i * s, n - i < sum_block ? n - i : sum_block, s));
      });
      give<centred>(c, o, total.squares, total.mean);
    }
  });
}

void squares(const Call& c) {
  if (c.attrs->i[1]) RILLE_REALS(c.in[0].dtype, squares_as<S, true>(c));
  else RILLE_REALS(c.in[0].dtype, squares_as<S, false>(c));
}

}  // namespace rille::kernels::RILLE_ISA
