// Random numbers: Philox 4x32-10 (Salmon et al., SC 2011), keyed by c.random, with a counter derived from the position.
// A position of an operation thus gets the same number on any device, with any layout and number of threads.
//
// One Philox block of four words serves positions 4k to 4k+3.
#include <math.h>

#include "kernels/nest.hpp"
#include "kernels/vecmath_wide.hpp"

namespace rille::kernels::RILLE_ISA {

struct Words {
  uint32_t w[4];
};

// Counter: (block's low half, block's high half, operation's index, step's low half). Key: seed, with the step's high
// half mixed in.
static inline __attribute__((always_inline)) Words philox(const RandomKey& key, uint64_t block) {
  uint32_t c0 = uint32_t(block), c1 = uint32_t(block >> 32), c2 = key.index, c3 = uint32_t(key.step);
  uint32_t k0 = uint32_t(key.seed), k1 = uint32_t(key.seed >> 32) ^ uint32_t(key.step >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
    const uint32_t n0 = uint32_t(p1 >> 32) ^ c1 ^ k0, n2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c1 = uint32_t(p1);
    c3 = uint32_t(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// A number in [0, 1) with 24 bits: exact in f32, and the same in f64.
static inline float unit(uint32_t w) { return float(w >> 8) * 0x1p-24f; }

// The words of `together` Philox blocks, one array per word, so that loops over them vectorize.
static constexpr int64_t together = 64;
struct Drawn {
  uint32_t w[4][together];
};
static void philox_blocks(const RandomKey& key, uint64_t first, Drawn& d) {
#pragma omp simd
  for (int64_t b = 0; b < together; ++b) {
    const Words words = philox(key, first + uint64_t(b));
    for (int k = 0; k < 4; ++k) d.w[k][b] = words.w[k];
  }
}

// Sets out[position] = value(word index, words, position) for each position in [0, n).
template <class T, class F>
static void draw(const Call& c, T* out, int64_t n, const F& f) {
  for_stoppable(c, (n + 4 * together - 1) / (4 * together), 4 * together, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      Drawn d;
      philox_blocks(c.random, uint64_t(g * together), d);
      const int64_t first = 4 * together * g, left = n - first < 4 * together ? n - first : 4 * together;
      for (int64_t i = 0; i < left; i += 4) {
        const Words words{{d.w[0][i / 4], d.w[1][i / 4], d.w[2][i / 4], d.w[3][i / 4]}};
        const int64_t at = first + i, m = left - i < 4 ? left - i : 4;
        for (int64_t k = 0; k < m; ++k) out[at + k] = f(words, k, at + k);
      }
    }
  });
}

// out[0] = attrs.f[0] + (attrs.f[1] - attrs.f[0]) * u, u in [0, 1)
void uniform(const Call& c) {
  const double low = c.attrs->f[0], high = c.attrs->f[1];
  RILLE_FLOATS(c.out[0].dtype, {
    const T lo = T(low), span = T(high - low);
    draw(c, c.out[0].ptr<T>(), c.out[0].count(),
         [=](const Words& w, int64_t k, int64_t) { return lo + span * T(unit(w.w[k])); });
  });
}

// Words (0, 1) give two numbers and words (2, 3) two more (Box and Muller). 1 - u is never zero.
static void normal_floats(const Call& c, float* out, int64_t n) {
  for_stoppable(c, (n + 4 * together - 1) / (4 * together), 16 * together, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      Drawn d;
      philox_blocks(c.random, uint64_t(g * together), d);
      float made[4][together];
      for (int h = 0; h < 4; h += 2) {
#pragma omp simd
        for (int64_t b = 0; b < together; ++b) {
          const double r = vsqrt(-1.3862943611198906 * wide_log2(1.0 - double(unit(d.w[h][b]))));  // factor: -2 ln 2
          const Turned a = wide_turned(double(unit(d.w[h + 1][b])));
          made[h][b] = float(r * a.cosine);
          made[h + 1][b] = float(r * a.sine);
        }
      }
      const int64_t first = 4 * together * g, left = n - first < 4 * together ? n - first : 4 * together;
      for (int64_t i = 0; i < left; ++i) out[first + i] = made[i % 4][i / 4];
    }
  });
}

// out[0] ~ N(0, 1), by Box and Muller
void normal(const Call& c) {
  if (c.out[0].dtype == DType::f32) return normal_floats(c, c.out[0].ptr<float>(), c.out[0].count());
  draw(c, c.out[0].ptr<double>(), c.out[0].count(), [](const Words& w, int64_t k, int64_t) {
    const int64_t pair = k & ~int64_t(1);
    const double r = ::sqrt(-2.0 * ::log(1.0 - double(unit(w.w[pair])))), a = 6.283185307179586 * unit(w.w[pair + 1]);
    return k & 1 ? r * ::sin(a) : r * ::cos(a);
  });
}

// out[0] uniform in [attrs.i[0], attrs.i[1])
void integers(const Call& c) {
  const int64_t low = c.attrs->i[0];
  const uint64_t span = uint64_t(c.attrs->i[1] - low);
  RILLE_NUMBERS(c.out[0].dtype, {
    draw(c, c.out[0].ptr<T>(), c.out[0].count(), [=](const Words& w, int64_t k, int64_t) {
      // A 32-bit word scaled to a span below 2^32 has a bias under span / 2^32.
      return T(low +
               int64_t(span >> 32 ? (uint64_t(w.w[k]) << 32 | w.w[k ^ 1]) % span : uint64_t(w.w[k]) * span >> 32));
    });
  });
}

// out[0] = in[0] / (1 - p) where an element is kept, else 0; p = attrs.f[0]. Applied to the gradient with the same key,
// it gives the gradient of in[0].
void dropout(const Call& c) {
  const double p = c.attrs->f[0];
  const uint32_t least = uint32_t(p * 16777216.0);  // keeps an element if its top 24 bits are at least this
  RILLE_FLOATS(c.out[0].dtype, {
    const T* x = c.in[0].ptr<T>();
    const T factor = T(1.0 / (1.0 - p));
    draw(c, c.out[0].ptr<T>(), c.out[0].count(),
         [=](const Words& w, int64_t k, int64_t i) { return (w.w[k] >> 8) >= least ? x[i] * factor : T(0); });
  });
}

// in: weights [rows, c]; out: i64 [rows]
void multinomial(const Call& c) {
  const View& weights = c.in[0];
  const int64_t rows = c.out[0].count(), n = weights.shape[1];
  int64_t* out = c.out[0].ptr<int64_t>();
  RILLE_FLOATS(weights.dtype, {
    for (int64_t r = 0; r < rows && !c.stopped(); ++r) {
      const T* w = weights.ptr<T>() + r * n;
      double total = 0;
      for (int64_t j = 0; j < n; ++j) {
        if (!(w[j] >= T(0)))
          return c.fail("multinomial: weight %g at row %lld, place %lld; weights must be >= 0", double(w[j]),
                        (long long)r, (long long)j);
        total += double(w[j]);
      }
      if (!(total > 0) || total > 1e300)
        return c.fail("multinomial: the weights of row %lld sum to %g; expected a finite sum above 0", (long long)r,
                      total);
      const double mark = double(unit(philox(c.random, uint64_t(r)).w[0])) * total;
      double sum = 0;
      int64_t pick = -1;
      for (int64_t j = 0; j < n && sum <= mark; ++j) {
        sum += double(w[j]);
        if (w[j] > T(0)) pick = j;
      }
      out[r] = pick;
    }
  });
}

}  // namespace rille::kernels::RILLE_ISA
