// Sums of a few thousand numbers, and means with sums of squares about them, put together from parts. Inlined without
// fail: a loop that calls its function is no vector, and five times as slow.
#pragma once

#include "kernels/vecmath.hpp"

namespace rille::kernels::RILLE_ISA {

static constexpr int64_t sum_block = 4096;   // elements that are added up in their own type; beyond, in f64

// f(0) + .. + f(n - 1), four quarters side by side: a vector's addition takes four cycles, but one begins in each.
template <class T, class F> RILLE_INLINE T sum_of(int64_t n, const F& f) {
  T a = 0, b = 0, c = 0, d = 0;
  const int64_t q = n / 64 * 16;
#pragma omp simd reduction(+ : a, b, c, d)
  for (int64_t i = 0; i < q; ++i) {
    a += f(i);
    b += f(i + q);
    c += f(i + 2 * q);
    d += f(i + 3 * q);
  }
  T rest = 0;
#pragma omp simd reduction(+ : rest)
  for (int64_t i = 4 * q; i < n; ++i) rest += f(i);
  return ((a + b) + (c + d)) + rest;
}

// The same of any number of elements, blocks of them added up in f64.
template <class T, class F> RILLE_INLINE double long_sum_of(int64_t n, const F& f) {
  double total = 0;
  for (int64_t first = 0; first < n; first += sum_block) {
    const int64_t m = n - first < sum_block ? n - first : sum_block;
    total += double(sum_of<T>(m, [&](int64_t i) { return f(first + i); }));
  }
  return total;
}

// Adds both sums, block by block, so that what the two read in common is in the first cache.
template <class T, class F, class G>
RILLE_INLINE void add_sums_of(int64_t n, const F& f, const G& g, double* f_total, double* g_total) {
  for (int64_t first = 0; first < n; first += sum_block) {
    const int64_t m = n - first < sum_block ? n - first : sum_block;
    *f_total += double(sum_of<T>(m, [&](int64_t i) { return f(first + i); }));
    *g_total += double(sum_of<T>(m, [&](int64_t i) { return g(first + i); }));
  }
}

// How many, their mean, and the sum of the squares of what they are away from it.
struct Moments {
  double n = 0, mean = 0, squares = 0;
  // Chan, Golub and LeVeque 1979.
  void join(const Moments& o) {
    if (o.n == 0) return;
    if (n == 0) { *this = o; return; }               // not by its mean's square: it may have no room
    const double all = n + o.n, away = o.mean - mean;
    squares += o.squares + away * away * (n * o.n / all);
    mean += away * (o.n / all);
    n = all;
  }
};

// Of at most sum_block dense elements: they are read twice, the second time from the first cache.
template <class T> RILLE_INLINE Moments moments_of(const T* x, int64_t n) {
  const double mean = double(sum_of<T>(n, [=](int64_t i) { return x[i]; })) / double(n);
  const T m = T(mean);
  const T squares = sum_of<T>(n, [=](int64_t i) { return (x[i] - m) * (x[i] - m); });
  return {double(n), mean, double(squares)};
}

}  // namespace rille::kernels::RILLE_ISA
