// Fourier transforms of [outer, n, inner] complex numbers along n. Powers of two by Stockham's radix-2 passes; other
// sizes by Bluestein's method (1970), a convolution with a chirp through transforms of a power of two. cuFFT is faster;
// these kernels run where it is missing. Twiddle factors are computed in f64.
#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

template <class C> struct alignas(2 * sizeof(C)) Complex { C re, im; };
template <class C> DEVICE Complex<C> times(Complex<C> a, Complex<C> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// e^(i pi part / whole)
template <class C> DEVICE Complex<C> turn(Long part, Long whole) {
  double s, c;
  sincos(3.14159265358979323846 * (double(part) / double(whole)), &s, &c);
  return {C(c), C(s)};
}
template <class Body> DEVICE void each_number(Long n, const Body& body) {
  const Long stride = Long(gridDim.x) * blockDim.x;
  for (Long i = Long(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) body(i);
}

// One Stockham pass: combines pairs that are n / 2 apart and writes them `done` apart.
template <class C>
DEVICE void fft_pass(const Complex<C>* x, Complex<C>* y, Long outer, Long n, Long inner, Long done, int sign) {
  const Long half = n / 2;
  each_number(outer * half * inner, [&](Long at) {
    const Long i = at % inner, t = at / inner % half, o = at / inner / half, k = t % done;
    const Complex<C>* from = x + (o * n + t) * inner + i;
    const Complex<C> a = from[0], b = times(from[half * inner], turn<C>(sign * k, done));
    Complex<C>* to = y + (o * n + (t - k) * 2 + k) * inner + i;
    to[0] = {a.re + b.re, a.im + b.im};
    to[done * inner] = {a.re - b.re, a.im - b.im};
  });
}
// c_j = e^(sign i pi j^2 / n); a_j = x_j c_j, then zeros up to m.
template <class C> DEVICE Complex<C> chirp(Long j, Long n, int sign) { return turn<C>(sign * (j * j % (2 * n)), n); }
template <class C>
DEVICE void chirp_begin(const Complex<C>* x, Complex<C>* a, Long outer, Long n, Long m, Long inner, int sign) {
  each_number(outer * m * inner, [&](Long at) {
    const Long i = at % inner, j = at / inner % m, o = at / inner / m;
    a[at] = j < n ? times(x[(o * n + j) * inner + i], chirp<C>(j, n, sign)) : Complex<C>{C(0), C(0)};
  });
}
// b_j = conj(c_j) for j < n, mirrored at the end: b_(m - j) = b_j.
template <class C> DEVICE void chirp_filter(Complex<C>* b, Long n, Long m, int sign) {
  each_number(m, [&](Long j) {
    const Long k = j < n ? j : m - j;
    b[j] = k < n ? chirp<C>(k, n, -sign) : Complex<C>{C(0), C(0)};
  });
}
template <class C> DEVICE void chirp_multiply(Complex<C>* a, const Complex<C>* b, Long outer, Long m, Long inner) {
  each_number(outer * m * inner, [&](Long at) { a[at] = times(a[at], b[at / inner % m]); });
}
template <class C>
DEVICE void chirp_end(const Complex<C>* a, Complex<C>* x, Long outer, Long n, Long m, Long inner, int sign) {
  each_number(outer * n * inner, [&](Long at) {
    const Long i = at % inner, k = at / inner % n, o = at / inner / n;
    Complex<C> y = times(a[(o * m + k) * inner + i], chirp<C>(k, n, sign));
    x[at] = {y.re / C(m), y.im / C(m)};
  });
}

// -- loading and storing. kind: 0 complex to complex, 1 reals to a half spectrum, 2 half spectrum to reals. If `bins`
// is not 0, bins of a half spectrum that stand for two bins are multiplied by it.
template <class C> DEVICE C bin_factor(Long k, Long n, double bins) {
  return bins != 0 && k >= 1 && k < (n + 1) / 2 ? C(bins) : C(1);
}
template <class T>
DEVICE void fft_load(const T* in, Complex<Wide<T>>* x, Long rows, Long n, int kind, double bins) {
  typedef Wide<T> C;
  const Long width = kind == 2 ? n / 2 + 1 : n;
  each_number(rows * width, [&](Long at) {
    if (kind == 1) {
      x[at] = {widen(in[at]), C(0)};
      return;
    }
    const C f = kind == 2 ? bin_factor<C>(at % width, n, bins) : C(1);
    x[at] = {widen(in[2 * at]) * f, widen(in[2 * at + 1]) * f};
  });
}
// grow: rows of a half spectrum become rows of the whole spectrum; else whole rows become half rows.
template <class C> DEVICE void fft_width(const Complex<C>* x, Complex<C>* y, Long rows, Long n, int grow) {
  const Long half = n / 2 + 1, to = grow ? n : half;
  each_number(rows * to, [&](Long at) {
    const Long row = at / to, k = at - row * to;
    if (!grow) {
      y[at] = x[row * n + k];
    } else if (k < half) {
      y[at] = x[row * half + k];
    } else {
      const Complex<C> v = x[row * half + (n - k)];
      y[at] = {v.re, -v.im};
    }
  });
}
template <class T>
DEVICE void fft_store(const Complex<Wide<T>>* x, T* out, Long rows, Long n, int kind, double scale, double bins) {
  typedef Wide<T> C;
  const Long width = kind == 1 ? n / 2 + 1 : n;
  each_number(rows * width, [&](Long at) {
    const Complex<C> v = x[at];
    if (kind == 2) {
      out[at] = narrow<T>(v.re * C(scale));
      return;
    }
    const C f = (kind == 1 ? bin_factor<C>(at % width, n, bins) : C(1)) * C(scale);
    out[2 * at] = narrow<T>(v.re * f);
    out[2 * at + 1] = narrow<T>(v.im * f);
  });
}

#define FOURIER(name, C)                                                                                       \
  ENTRY(fft_pass_##name, 256, const Complex<C>* x, Complex<C>* y, Long outer, Long n, Long inner, Long done,   \
          int sign) {                                                                                          \
    fft_pass<C>(x, y, outer, n, inner, done, sign);                                                            \
  }                                                                                                            \
  ENTRY(chirp_begin_##name, 256, const Complex<C>* x, Complex<C>* a, Long outer, Long n, Long m, Long inner,   \
          int sign) {                                                                                          \
    chirp_begin<C>(x, a, outer, n, m, inner, sign);                                                            \
  }                                                                                                            \
  ENTRY(chirp_filter_##name, 256, Complex<C>* b, Long n, Long m, int sign) { chirp_filter<C>(b, n, m, sign); } \
  ENTRY(chirp_multiply_##name, 256, Complex<C>* a, const Complex<C>* b, Long outer, Long m, Long inner) {      \
    chirp_multiply<C>(a, b, outer, m, inner);                                                                  \
  }                                                                                                            \
  ENTRY(chirp_end_##name, 256, const Complex<C>* a, Complex<C>* x, Long outer, Long n, Long m, Long inner,     \
          int sign) {                                                                                          \
    chirp_end<C>(a, x, outer, n, m, inner, sign);                                                              \
  }                                                                                                            \
  ENTRY(fft_width_##name, 256, const Complex<C>* x, Complex<C>* y, Long rows, Long n, int grow) {              \
    fft_width<C>(x, y, rows, n, grow);                                                                         \
  }
FOURIER(f32, float)
FOURIER(f64, double)
#define ENDS(op, name, T)                                                                                    \
  ENTRY(fft_load_##name, 256, const T* in, Complex<Wide<T>>* x, Long rows, Long n, int kind, double bins) {  \
    fft_load<T>(in, x, rows, n, kind, bins);                                                                 \
  }                                                                                                          \
  ENTRY(fft_store_##name, 256, const Complex<Wide<T>>* x, T* out, Long rows, Long n, int kind, double scale, \
          double bins) {                                                                                     \
    fft_store<T>(x, out, rows, n, kind, scale, bins);                                                        \
  }
FOR_FLOATS(ENDS, ends)

}  // namespace rille::kernels::cuda
