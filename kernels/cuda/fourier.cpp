// Launches of Fourier transforms: the order of the passes.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

using Long = long long;

// From this length on a library is asked first; shorter transforms need only a few passes of these kernels.
constexpr std::int64_t by_library = 64;

// Complex numbers in two buffers: each pass reads one and writes the other.
class Transform {
 public:
  Transform(Launcher& l, DType t, std::int64_t numbers) : l_(l), wide_(t == DType::f64), each_(wide_ ? 16 : 8) {
    for (auto& b : buffer_) b = l.scratch(std::size_t(numbers) * each_);
  }
  bool ok() const { return buffer_[0] && buffer_[1]; }
  void* now() const { return buffer_[0]; }

  // Transforms along n of [outer, n, inner]. Returns false if there is no memory.
  bool along(std::int64_t outer, std::int64_t n, std::int64_t inner, int sign) {
    if (n == 1 || (n >= by_library && l_.transform({now(), outer, n, inner, sign, wide_}))) return true;
    if ((n & (n - 1)) == 0) {
      passes(buffer_, outer, n, inner, sign);
      return true;
    }
    std::int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    const std::size_t bytes = std::size_t(outer * m * inner) * each_;
    void* a[2] = {l_.scratch(bytes), l_.scratch(bytes)};
    void* b[2] = {l_.scratch(std::size_t(m) * each_), l_.scratch(std::size_t(m) * each_)};
    if (!a[0] || !a[1] || !b[0] || !b[1]) return false;
    go("chirp_begin_f32", "chirp_begin_f64", outer * m * inner, now(), a[0], Long(outer), Long(n), Long(m), Long(inner),
       sign);
    go("chirp_filter_f32", "chirp_filter_f64", m, b[0], Long(n), Long(m), sign);
    passes(a, outer, m, inner, -1);
    passes(b, 1, m, 1, -1);
    go("chirp_multiply_f32", "chirp_multiply_f64", outer * m * inner, a[0], b[0], Long(outer), Long(m), Long(inner));
    passes(a, outer, m, inner, 1);
    go("chirp_end_f32", "chirp_end_f64", outer * n * inner, a[0], now(), Long(outer), Long(n), Long(m), Long(inner),
       sign);
    return true;
  }
  // Turns rows of n numbers into half spectra or, with `grow`, half spectra into rows of n.
  void width(std::int64_t rows, std::int64_t n, bool grow) {
    go("fft_width_f32", "fft_width_f64", rows * n, buffer_[0], buffer_[1], Long(rows), Long(n), int(grow));
    std::swap(buffer_[0], buffer_[1]);
  }

 private:
  template <class... A> void go(const char* f32, const char* f64, std::int64_t work, A... arguments) {
    launch(l_, wide_ ? f64 : f32, grid_for(l_, work), {threads}, 0, arguments...);
  }
  void passes(void* (&x)[2], std::int64_t outer, std::int64_t n, std::int64_t inner, int sign) {
    for (std::int64_t done = 1; done < n; done *= 2) {
      go("fft_pass_f32", "fft_pass_f64", outer * n / 2 * inner, x[0], x[1], Long(outer), Long(n), Long(inner),
         Long(done), sign);
      std::swap(x[0], x[1]);
    }
  }
  Launcher& l_;
  bool wide_;
  std::size_t each_;
  void* buffer_[2];
};

}  // namespace

void fourier(const Call& c, Launcher& l, const Names&) {
  if (c.out[0].count() == 0) return;
  const View& x = c.in[0];
  const int kind = int(c.attrs->i[0]), sign = kind == 0 ? int(c.attrs->i[1]) : kind == 1 ? -1 : 1;
  const std::int64_t n = c.attrs->i[4], rows = c.attrs->i[2] == 2 ? c.attrs->i[3] : 1, half = n / 2 + 1;
  const std::int64_t in_each = kind == 0 ? 2 * rows * n : kind == 1 ? rows * n : 2 * rows * half;
  const std::int64_t count = x.count() / in_each, all = count * rows;
  Transform t(l, stats_type(x.dtype), all * std::max(n, half));
  bool ok = t.ok();
  if (ok) {
    launch(l, name_in(RILLE_NAMES("fft_load"), x.dtype), grid_for(l, all * n), {threads}, 0, x.data, t.now(), Long(all),
           Long(n), kind, c.attrs->f[1]);
    const std::int64_t width = kind == 0 ? n : half;
    if (kind == 2) {                              // inverse: the rows come last, so that they end as reals
      ok = t.along(count, rows, width, sign);
      t.width(all, n, true);
      ok = ok && t.along(all, n, 1, sign);
    } else {
      ok = t.along(all, n, 1, sign);
      if (kind == 1) t.width(all, n, false);
      ok = ok && t.along(count, rows, width, sign);
    }
  }
  if (!ok) return c.fail("fft: no memory for a transform of %lld numbers\n"
                         "work on smaller tensors or batches, or free tensors", (long long)(rows * n));
  launch(l, name_in(RILLE_NAMES("fft_store"), x.dtype), grid_for(l, all * n), {threads}, 0, t.now(), c.out[0].data,
         Long(all), Long(n), kind, c.attrs->f[0], c.attrs->f[1]);
}

}  // namespace rille::kernels::cuda
