// Fourier transforms of the last one or two dimensions, by FFTW. A complex number is two adjacent reals, so complex
// tensors have a last dimension of 2. Each kind and size has one FFTW plan, made with FFTW_ESTIMATE (no timing, so
// always the same plan) and cached on the lane. The transforms of a batch are distributed over threads; each runs on
// one thread.
#include "kernels/call.hpp"

#ifndef RILLE_FFTW

void rille::kernels::fourier(const Call& c) { c.fail("fft: this Rille was built without FFTW (-D RILLE_FFTW=OFF)"); }

#else

#include <fftw3.h>

#include <cstring>
#include <map>
#include <tuple>

#include "kernels/nest.hpp"

namespace rille::kernels {

namespace {

// FFTW's float and double libraries under common names.
template <class T>
struct Fftw;
template <>
struct Fftw<float> {
  using Plan = fftwf_plan;
  using Complex = fftwf_complex;
  static constexpr auto plan_c2c = fftwf_plan_dft;
  static constexpr auto plan_r2c = fftwf_plan_dft_r2c;
  static constexpr auto plan_c2r = fftwf_plan_dft_c2r;
  static constexpr auto run_c2c = fftwf_execute_dft;
  static constexpr auto run_r2c = fftwf_execute_dft_r2c;
  static constexpr auto run_c2r = fftwf_execute_dft_c2r;
  static constexpr auto destroy = fftwf_destroy_plan;
};
template <>
struct Fftw<double> {
  using Plan = fftw_plan;
  using Complex = fftw_complex;
  static constexpr auto plan_c2c = fftw_plan_dft;
  static constexpr auto plan_r2c = fftw_plan_dft_r2c;
  static constexpr auto plan_c2r = fftw_plan_dft_c2r;
  static constexpr auto run_c2c = fftw_execute_dft;
  static constexpr auto run_r2c = fftw_execute_dft_r2c;
  static constexpr auto run_c2r = fftw_execute_dft_c2r;
  static constexpr auto destroy = fftw_destroy_plan;
};

using Key = std::tuple<int, int, int, int, int>;  // kind, sign, dimensions, two sizes

template <class T>
using Plans = std::map<Key, typename Fftw<T>::Plan>;

struct PlanCache : LaneState::Prepared {
  static constexpr std::size_t limit = 256;  // when the cache has this many plans, all are dropped
  Plans<float> single;
  Plans<double> wide;
  template <class T>
  auto& plans() {
    if constexpr (sizeof(T) == 4) return single;
    else return wide;
  }
  template <class T>
  void drop() {
    for (auto& [key, plan] : plans<T>()) Fftw<T>::destroy(plan);
    plans<T>().clear();
  }
  ~PlanCache() override {
    drop<float>();
    drop<double>();
  }
};

struct Task {
  int kind, sign, dimensions, sizes[2];
  std::int64_t real = 1, half = 1;  // of one transform: number of reals, number of bins of the half spectrum
  explicit Task(const Attrs& a)
      : kind(int(a.i[0])), sign(int(a.i[1])), dimensions(int(a.i[2])), sizes{int(a.i[3]), int(a.i[4])} {
    if (dimensions == 1) sizes[0] = 1;
    real = std::int64_t(sizes[0]) * sizes[1];
    half = std::int64_t(sizes[0]) * (sizes[1] / 2 + 1);
  }
};

// Returns the cached plan, or makes it. FFTW writes to the memory with which it plans, so it gets `scratch`. Null: FFTW
// could not make the plan.
template <class T>
typename Fftw<T>::Plan plan_of(const Call& c, const Task& t, T* scratch) {
  auto*& slot = c.lane->prepared(LaneState::Library::fourier);
  if (!slot) slot = new PlanCache;
  auto& cache = static_cast<PlanCache&>(*slot);
  auto& plans = cache.template plans<T>();
  const Key key{t.kind, t.sign, t.dimensions, t.sizes[0], t.sizes[1]};
  if (const auto found = plans.find(key); found != plans.end()) return found->second;
  if (plans.size() >= PlanCache::limit) cache.template drop<T>();
  const int* n = t.dimensions == 1 ? t.sizes + 1 : t.sizes;
  auto* complex = reinterpret_cast<typename Fftw<T>::Complex*>(scratch);
  auto* other = reinterpret_cast<typename Fftw<T>::Complex*>(scratch + 2 * t.real + 2);
  constexpr unsigned flags = FFTW_ESTIMATE | FFTW_UNALIGNED;
  const auto plan = t.kind == 0   ? Fftw<T>::plan_c2c(t.dimensions, n, complex, other, t.sign, flags)
                    : t.kind == 1 ? Fftw<T>::plan_r2c(t.dimensions, n, scratch, other, flags)
                                  : Fftw<T>::plan_c2r(t.dimensions, n, other, scratch, flags);
  if (plan) plans.emplace(key, plan);
  return plan;
}

template <class T>
void scale_bins(const Task& t, T* x, T factor) {
  const std::int64_t n = t.sizes[1], bins = n / 2 + 1;
  for (std::int64_t row = 0; row < t.sizes[0]; ++row)
    for (std::int64_t k = 1; k < (n + 1) / 2; ++k) {
      x[(row * bins + k) * 2] *= factor;
      x[(row * bins + k) * 2 + 1] *= factor;
    }
}

template <class T>
void transform(const Call& c) {
  using F = Fftw<T>;
  const Task t(*c.attrs);
  const std::int64_t in_each = t.kind == 0 ? 2 * t.real : t.kind == 1 ? t.real : 2 * t.half;
  const std::int64_t out_each = t.kind == 0 ? 2 * t.real : t.kind == 1 ? 2 * t.half : t.real;
  const std::int64_t count = c.in[0].count() / in_each, planning = 2 * t.real + 2 + 2 * std::max(t.real, t.half);
  // A complex-to-real transform destroys its input, so each thread works on a copy.
  const std::int64_t copies = t.kind == 2 ? omp_get_max_threads() * in_each : 0;
  T* scratch = static_cast<T*>(c.lane->scratch(std::size_t(std::max(planning, copies)) * sizeof(T)));
  const auto plan = scratch ? plan_of<T>(c, t, scratch) : nullptr;
  if (!plan)
    return c.fail(
        "fft: no memory to plan a transform of %lld numbers\nwork on smaller tensors or batches, or free tensors",
        (long long)t.real);
  const T scale = T(c.attrs->f[0]), bins = T(c.attrs->f[1]);
  generic::for_stoppable(c, count, t.real * 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T *x = c.in[0].ptr<T>() + i * in_each, *y = c.out[0].ptr<T>() + i * out_each;
      if (t.kind == 2) {
        T* mine = scratch + omp_get_thread_num() * in_each;
        std::memcpy(mine, x, std::size_t(in_each) * sizeof(T));
        if (bins != 0) scale_bins(t, mine, bins);
        x = mine;
      }
      auto *cx = reinterpret_cast<typename F::Complex*>(x), *cy = reinterpret_cast<typename F::Complex*>(y);
      if (t.kind == 0) F::run_c2c(plan, cx, cy);
      else if (t.kind == 1) F::run_r2c(plan, x, cy);
      else F::run_c2r(plan, cx, y);
      if (t.kind == 1 && bins != 0) scale_bins(t, y, bins);
      if (scale != 1)
        for (std::int64_t k = 0; k < out_each; ++k) y[k] *= scale;
    }
  });
}

void transform_rows(const Call& c) {
  if (c.out[0].count() == 0) return;
  RILLE_FLOATS(c.in[0].dtype, transform<T>(c));
}

}  // namespace

// in, out: contiguous. attrs.i[0]: 0 complex to complex, 1 real to half spectrum, 2 half spectrum to real. i[1]: the
// sign of the exponent, for complex to complex. i[2]: 1 or 2 dimensions. i[3], i[4]: the sizes of the last two
// dimensions, in reals; the last dimension is i[4]. attrs.f[0]: factor of every result. f[1]: factor of the bins of a
// half spectrum that stand for two bins.
void fourier(const Call& c) { widened(c, &transform_rows); }

}  // namespace rille::kernels

#endif
