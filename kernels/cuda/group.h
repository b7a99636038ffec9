// The steps of a plan's group for one element, which the generated kernel (device/group.hpp) calls. Each value is
// rounded to its type as if it had been stored, so a group gives the bits of separate operations.
#pragma once

#include "kernels/cuda/walk.h"

namespace rille::kernels::cuda {

template <int M> struct Numbers { double at[M]; };

// Applies F to operands that are already widened.
template <class F, class R, class C> DEVICE R one(C x, double f, double g) {
  return narrow<R>(F::go(x, C(f), C(g)));
}
template <class F, class R, class C> DEVICE R two(C a, C b, double f, double g) {
  return narrow<R>(F::go(a, b, C(f), C(g)));
}
template <class To, class From> DEVICE To converted(From x) { return Convert<To>::of(widen(x)); }

}  // namespace rille::kernels::cuda
