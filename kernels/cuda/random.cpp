// Launches of random operations. Seed and step are in device memory; the operation's index is a kernel argument.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

template <class... A>
void draw(const Call& c, Launcher& l, const Names& names, A... numbers) {
  const View& o = c.out[0];
  const std::int64_t n = o.count();
  if (n == 0) return;
  launch(l, name_in(names, o.dtype), grid_for(l, blocks_for(n, 4)), {threads}, 0, l.step_key(), c.random.index, o.data,
         (long long)(n), int(aligned(o.data, size_bytes(o.dtype) * 4)), numbers...);
}

}  // namespace

void uniform(const Call& c, Launcher& l, const Names& names) { draw(c, l, names, c.attrs->f[0], c.attrs->f[1]); }
void normal(const Call& c, Launcher& l, const Names& names) { draw(c, l, names); }
void integers(const Call& c, Launcher& l, const Names& names) {
  const std::int64_t low = c.attrs->i[0];
  draw(c, l, names, (long long)(low), (unsigned long long)(c.attrs->i[1] - low));
}

void dropout(const Call& c, Launcher& l, const Names& names) {
  const View& o = c.out[0];
  const std::int64_t n = o.count();
  if (n == 0) return;
  launch(l, name_in(names, o.dtype), grid_for(l, blocks_for(n, 4)), {threads}, 0, l.step_key(), c.random.index,
         c.in[0].data, o.data, (long long)(n), int(aligned(o.data, size_bytes(o.dtype) * 4)), c.attrs->f[0]);
}

void multinomial(const Call& c, Launcher& l, const Names& names) {
  const View& w = c.in[0];
  const std::int64_t rows = c.out[0].count();
  if (rows == 0) return;
  if (rows >= std::int64_t(1) << 31)
    return c.fail("multinomial: %lld rows; a CUDA device takes at most 2^31 - 1", (long long)rows);
  launch(l, name_in(names, w.dtype), {unsigned(rows)}, {threads}, 0, l.step_key(), c.random.index, w.data,
         c.out[0].data, (long long)(w.shape[1]), l.fault());
}

}  // namespace rille::kernels::cuda
