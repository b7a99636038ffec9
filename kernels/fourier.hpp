// Fourier transforms of the last one or two dimensions, by FFTW. A complex number is two reals side by side: a last
// dimension of 2. Built once (kernels/generic).
#pragma once

#include "kernels/call.hpp"

namespace rille::kernels {

// in, out: contiguous. attrs.i[0]: 0 complex to complex, 1 real to half spectrum, 2 half spectrum to real;
// i[1]: the sign of the exponent, for complex to complex; i[2]: 1 or 2 dimensions; i[3], i[4]: their sizes
// (of the real side), the last dimension in i[4]. attrs.f[0]: every result times this; f[1]: bins of a half
// spectrum that stand for two, times this.
void fourier_any(const Call& c);
inline void fourier(const Call& c) { widened(c, &fourier_any); }

}  // namespace rille::kernels
