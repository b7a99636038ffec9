// Philox 4x32-10 (Salmon et al., SC 2011) and random numbers made from it, equal to those of kernels/random.cpp. A
// thread makes block b of four words, for positions 4b to 4b + 3. Seed and step are read from device memory.
#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

struct Words { unsigned w[4]; };

// Counter: (block's low and high half, operation's index, step's low half). Key: seed, with the step's high half mixed
// in.
DEVICE Words philox(const StepKey& key, unsigned index, unsigned long long block) {
  unsigned c0 = unsigned(block), c1 = unsigned(block >> 32), c2 = index, c3 = unsigned(key.step);
  unsigned k0 = unsigned(key.seed), k1 = unsigned(key.seed >> 32) ^ unsigned(key.step >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned n0 = __umulhi(0xCD9E8D57u, c2) ^ c1 ^ k0, n2 = __umulhi(0xD2511F53u, c0) ^ c3 ^ k1;
    c1 = 0xCD9E8D57u * c2;
    c3 = 0xD2511F53u * c0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// A number in [0, 1) with 24 bits: exact in f32, and the same in f64.
DEVICE float unit(unsigned w) { return float(w >> 8) * 5.9604644775390625e-8f; }

// Sets out[4b + k] = f(words, k, 4b + k); writes whole packs if the memory is aligned.
template <class T, class F>
DEVICE void draw(const StepKey* key_at, unsigned index, T* out, Long n, int packed, const F& f) {
  const StepKey key = *key_at;
  const Long stride = Long(gridDim.x) * blockDim.x, blocks = (n + 3) / 4;
  for (Long b = Long(blockIdx.x) * blockDim.x + threadIdx.x; b < blocks; b += stride) {
    const Words words = philox(key, index, static_cast<unsigned long long>(b));
    if (packed && 4 * b + 4 <= n) {
      Pack<T, 4> all;
#pragma unroll
      for (int k = 0; k < 4; ++k) all.at[k] = f(words, k, 4 * b + k);
      *reinterpret_cast<Pack<T, 4>*>(out + 4 * b) = all;
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) if (4 * b + k < n) out[4 * b + k] = f(words, k, 4 * b + k);
    }
  }
}

// Words (0, 1) give two numbers and words (2, 3) two more (Box and Muller). 1 - u is never zero.
DEVICE double normal_of(const Words& w, int k) {
  const int pair = k & ~1;
  const double r = sqrt(-2.0 * log(1.0 - double(unit(w.w[pair]))));
  const double a = 6.283185307179586 * double(unit(w.w[pair + 1]));
  return k & 1 ? r * sin(a) : r * cos(a);
}

#define DRAWN(op, name, T)                                                                                            \
  ENTRY(uniform_##name, 256, const StepKey* key, unsigned index, T* out, Long n, int packed, double low,              \
          double high) {                                                                                              \
    typedef Wide<T> C;                                                                                                \
    const C lo = C(low), span = C(high - low);                                                                        \
    draw(key, index, out, n, packed, [&](const Words& w, int k,                                                       \
            Long) { return narrow<T>(lo + span * C(unit(w.w[k]))); });                                                \
  }                                                                                                                   \
  ENTRY(normal_##name, 256, const StepKey* key, unsigned index, T* out, Long n, int packed) {                         \
    draw(key, index, out, n, packed, [&](const Words& w, int k, Long) { return narrow<T>(Wide<T>(normal_of(w,         \
            k))); });                                                                                                 \
  }                                                                                                                   \
  ENTRY(dropout_##name, 256, const StepKey* key, unsigned index, const T* in, T* out, Long n, int packed, double p) { \
    typedef Wide<T> C;                                                                                                \
    const unsigned least = unsigned(p * 16777216.0);      /* kept when the top 24 bits are not below */               \
    const C factor = C(1.0 / (1.0 - p));                                                                              \
    draw(key, index, out, n, packed, [&](const Words& w, int k, Long i) {                                             \
      return (w.w[k] >> 8) >= least ? narrow<T>(widen(in[i]) * factor) : narrow<T>(C(0));                             \
    });                                                                                                               \
  }                                                                                                                   \
  ENTRY(multinomial_##name, 256, const StepKey* key, unsigned index, const T* in, Long* out, Long n, Fault* fault) {  \
    multinomial<T>(key, index, in, out, n, fault);                                                                    \
  }
#define WHOLE(op, name, T) \
  ENTRY(integers_##name, 256, const StepKey* key, unsigned index, T* out, Long n, int packed, Long low, \
        unsigned long long span) { \
    draw(key, index, out, n, packed, [&](const Words& w, int k, Long) { \
      typedef unsigned long long U; \
      const U drawn = span >> 32 ? (U(w.w[k]) << 32 | w.w[k ^ 1]) % span : U(w.w[k]) * span >> 32; \
      return narrow<T>(Wide<T>(low + Long(drawn))); \
    }); \
  }

// One block per row: each thread sums a share of the weights; the thread whose share contains the drawn sum searches
// it.
template <class T>
DEVICE void multinomial(const StepKey* key, unsigned index, const T* in, Long* out, Long n, Fault* fault) {
  __shared__ double sums[256];
  __shared__ Long last_positive, picked;
  const Long row = blockIdx.x, each = (n + blockDim.x - 1) / blockDim.x, first = each * threadIdx.x;
  const Long end = first + each < n ? first + each : n;
  const T* w = in + row * n;
  if (threadIdx.x == 0) last_positive = picked = -1;
  __syncthreads();
  double sum = 0;
  Long last = -1;
  for (Long j = first; j < end; ++j) {
    const double x = double(widen(w[j]));
    if (!(x >= 0)) report(fault, multinomial_weight, __double_as_longlong(x), j, row);
    sum += x;
    if (x > 0) last = j;
  }
  sums[threadIdx.x] = sum;
  if (last >= 0) atomicMax(&last_positive, last);
  __syncthreads();
  double total = 0, before = 0;
  for (unsigned t = 0; t < blockDim.x; ++t) {
    if (t == threadIdx.x) before = total;
    total += sums[t];
  }
  if (threadIdx.x == 0 && (!(total > 0) || total > 1e300))
    report(fault, multinomial_sum, __double_as_longlong(total), 0, row);
  const double mark = double(unit(philox(*key, index, static_cast<unsigned long long>(row)).w[0])) * total;
  if (before <= mark && mark < before + sum) {
    Long at = first;
    double seen = before;
    for (; at < end; ++at) {
      seen += double(widen(w[at]));
      if (seen > mark) break;
    }
    picked = at < end ? at : last;       // `last` if rounding passes the end; its weight is not 0
  }
  __syncthreads();
  if (threadIdx.x == 0) out[row] = picked >= 0 ? picked : last_positive;   // rounding may leave the mark to no thread
}
FOR_FLOATS(DRAWN, draw)
FOR_NUMBERS(WHOLE, integers)

}  // namespace rille::kernels::cuda
