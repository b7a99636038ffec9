// Launches of reductions and scans: how the work is divided.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

using Long = long long;

// Dimensions [first, last) of v, contiguous neighbours merged, the fastest first.
Axes axes_of(const View& v, int first, int last) {
  View part = v;
  part.shape.n = part.strides.n = last - first;
  for (int d = first; d < last; ++d) {
    part.shape[d - first] = v.shape[d];
    part.strides[d - first] = v.strides[d];
  }
  const View* const views[1] = {&part};
  const Joined<1> j(views);
  Axes a{};
  a.rank = j.rank;
  a.wide = j.count >= (std::int64_t(1) << 31);
  for (int d = 0; d < j.rank; ++d) {
    a.length[d] = j.shape[j.rank - 1 - d];
    a.step[d] = j.stride[0][j.rank - 1 - d];
    if (!a.wide && a.length[d]) a.size[d] = divider_of(unsigned(a.length[d]));
  }
  return a;
}

std::int64_t count_of(const View& v, int first, int last) {
  std::int64_t n = 1;
  for (int d = first; d < last; ++d) n *= v.shape[d];
  return n;
}

struct Cut {
  Reduction r{};
  Grid grid;
  unsigned parts = 1;
};

Cut cut_of(const View& x, int reduced_dimensions) {
  const int split = x.shape.n - reduced_dimensions;
  const std::size_t size = size_bytes(x.dtype), pack = std::size_t(pack_of(size));
  Cut c;
  Reduction& r = c.r;
  r.in = x.data;
  r.outer = axes_of(x, 0, split);
  r.inner = axes_of(x, split, x.shape.n);
  r.outputs = count_of(x, 0, split);
  r.reduced = count_of(x, split, x.shape.n);
  // Neighbouring threads take elements that are neighbours in memory.
  r.vertical = r.inner.step[0] != 1 && r.outer.step[0] == 1 && r.outputs > 1;
  if (r.vertical) r.outputs_log2 = 5;
  else r.outputs_log2 = r.reduced <= 256 && r.outputs > 1 ? 3 : 0;
  // The dimension along which packs lie is whole packs long, and every other one keeps them aligned.
  const Long along = r.vertical ? r.outer.length[0] : r.reduced;
  r.packed = r.inner.rank == 1 && (r.vertical ? r.inner.step[0] % Long(pack) == 0 : r.inner.step[0] == 1) &&
             along % Long(pack) == 0 && aligned(x.data, size * pack);
  for (int d = r.vertical; r.packed && d < r.outer.rank; ++d)
    r.packed = r.outer.length[d] == 1 || r.outer.step[d] % Long(pack) == 0;
  const bool many = r.vertical && r.packed;              // a thread has a pack of outputs
  const std::int64_t outs = std::int64_t(1) << r.outputs_log2, lanes = 256 / outs;
  const std::int64_t blocks = blocks_for(r.outputs, outs * (many ? std::int64_t(pack) : 1));
  // About a thousand blocks, in which each thread has at least 16 elements.
  const std::int64_t parts =
      std::clamp<std::int64_t>(std::min<std::int64_t>(blocks_for(1024, std::max<std::int64_t>(1, blocks)),
                                                      r.reduced / (lanes * (many ? 4 : 16))), 1, 1024);
  r.each = blocks_for(blocks_for(std::max<Long>(r.reduced, 1), parts), Long(pack)) * Long(pack);
  c.parts = unsigned(blocks_for(std::max<Long>(r.reduced, 1), r.each));
  c.grid = {unsigned(blocks), c.parts};
  return c;
}

void reduced_by(const Call& c, Launcher& l, const Names& names, const Names& folds) {
  const View &x = c.in[0], &out = c.out[0];
  if (out.count() == 0) return;
  Cut cut = cut_of(x, int(c.attrs->i[0]));
  if (blocks_for(cut.r.outputs, std::int64_t(1) << cut.r.outputs_log2) >= std::int64_t(1) << 31)
    return c.fail("reduction: %lld results are too many for one launch on a CUDA device", (long long)cut.r.outputs);
  cut.r.out = out.data;
  cut.r.factor = c.attrs->f[0];
  if (cut.parts > 1) {
    cut.r.parts = l.scratch(std::size_t(cut.r.outputs) * cut.parts * 16);   // 16 bytes: a value and an index at most
    if (!cut.r.parts) return c.fail("no memory for %lld partial sums\n"
                                    "work on smaller tensors or batches, or free tensors",
                                    (long long)(cut.r.outputs * cut.parts));
  }
  launch(l, name_in(names, x.dtype), cut.grid, {256}, 0, cut.r);
  if (cut.parts == 1) return;
  const Grid block{32, 8};
  launch(l, name_in(folds, x.dtype), RowShape::rows_grid(l, cut.r.outputs, block), block, 0, cut.r, cut.parts);
}

}  // namespace

#define RILLE_REDUCE(name)                                                               \
  void name(const Call& c, Launcher& l, const Names& names) {                            \
    static constexpr Names folds = RILLE_NAMES(#name "_fold");                           \
    reduced_by(c, l, names, folds);                                                      \
  }
RILLE_REDUCE(sum)
RILLE_REDUCE(prod)
RILLE_REDUCE(amax)
RILLE_REDUCE(amin)
RILLE_REDUCE(argmax)
RILLE_REDUCE(argmin)

void cumsum(const Call& c, Launcher& l, const Names& names) {
  const View& x = c.in[0];
  if (x.count() == 0) return;
  const std::int64_t n = x.shape[x.shape.n - 1], rows = x.count() / n;
  launch(l, name_in(names, x.dtype), RowShape::rows_grid(l, rows, {256}), {256}, 0, x.data, c.out[0].data, Long(rows),
         Long(n), int(c.attrs->i[0] != 0));
}

void prod_grad(const Call& c, Launcher& l, const Names& names) {
  const View& x = c.in[0];
  const std::int64_t rows = c.in[1].count(), n = rows ? x.count() / rows : 0;
  if (x.count() == 0) return;
  void* before = l.scratch(std::size_t(x.count()) * size_bytes(stats_type(x.dtype)));
  if (!before) return c.fail("prod: no memory for %lld products\n"
                             "work on smaller tensors or batches, or free tensors", (long long)x.count());
  launch(l, name_in(names, x.dtype), RowShape::rows_grid(l, rows, {256}), {256}, 0, x.data, c.in[1].data,
         c.out[0].data, before, Long(rows), Long(n));
}

}  // namespace rille::kernels::cuda
