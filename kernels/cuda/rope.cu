// Rotary position embedding (Su et al. 2021) of contiguous [.., t, d]: one thread rotates one pair.
#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

template <class T>
DEVICE void rope(const T* in, const void* cosines, const void* sines, int wide, T* out, Long rows, Long t, Long half,
                 int neighbours, int back) {
  typedef Wide<T> C;
  each_row(rows, [&](Long r) {
    const Long angles = r % t * half;
    const T* x = in + r * half * 2;
    T* y = out + r * half * 2;
    for (Long i = threadIdx.x; i < half; i += blockDim.x) {
      const Long first = neighbours ? 2 * i : i, second = neighbours ? 2 * i + 1 : half + i;
      const C a = widen(x[first]), b = widen(x[second]), c = weight_at<T>(cosines, wide, angles + i);
      const C s = back ? -weight_at<T>(sines, wide, angles + i) : weight_at<T>(sines, wide, angles + i);
      y[first] = narrow<T>(a * c - b * s);
      y[second] = narrow<T>(b * c + a * s);
    }
  });
}
#define ROPE(op, name, T)                                                                                      \
  ENTRY(rope_##name, 256, const T* in, const void* cosines, const void* sines, int wide, T* out, Long rows,   \
        Long t, Long half, int neighbours, int back) {                                                         \
    rope<T>(in, cosines, sines, wide, out, rows, t, half, neighbours, back);                                   \
  }
FOR_FLOATS(ROPE, rope)

}  // namespace rille::kernels::cuda
