// Row functions for softmax, cross entropy and attention, on one contiguous row.
#pragma once

#include "kernels/vecmath.hpp"

namespace rille::kernels::RILLE_ISA {

template <class T>
static inline T row_max(const T* x, int64_t n) {
  T m = -__builtin_inff();
#pragma omp simd reduction(max : m)
  for (int64_t i = 0; i < n; ++i) m = x[i] > m ? x[i] : m;
  return m;
}

// y = exp(x - shift); returns the sum. y may alias x.
template <class T>
static inline T row_exp(const T* x, T* y, int64_t n, T shift) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const T e = vexp(x[i] - shift);
    y[i] = e;
    sum += e;
  }
  return sum;
}

template <class T>
static inline T row_exp_sum(const T* x, int64_t n, T shift) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += vexp(x[i] - shift);
  return sum;
}

}  // namespace rille::kernels::RILLE_ISA
