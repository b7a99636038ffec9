// Launches for selecting rows and elements by index, and sorting. To sum over equal indices, the indices are sorted
// first, so that one thread computes each sum.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

using Long = long long;

// A contiguous tensor viewed as [outer, n, inner], where n is the size of dimension `dim`.
struct Around {
  std::int64_t outer = 1, n, inner = 1;
  Around(const View& v, int dim) : n(v.shape[dim]) {
    for (int d = 0; d < dim; ++d) outer *= v.shape[d];
    for (int d = dim + 1; d < v.shape.n; ++d) inner *= v.shape[d];
  }
};

// out[o, r] = in[o, ids[r]], where a row has from.inner elements.
void take_rows(Launcher& l, const View& in, const View& ids, const View& out, const Around& from, FaultCode code) {
  const std::int64_t m = ids.count(), bytes = from.inner * std::int64_t(size_bytes(in.dtype));
  if (out.count() == 0) return;
  std::int64_t unit = 16;
  while (bytes % unit || !aligned(in.data, std::size_t(unit)) || !aligned(out.data, std::size_t(unit))) unit /= 2;
  const std::int64_t units = bytes / unit;
  const unsigned x = power_above(units, threads);
  const Grid block{x, threads / x};
  const char* kernel = unit == 16 ? "take_rows_16" : RILLE_SIZED("take_rows", unit);
  launch(l, kernel, RowShape::rows_grid(l, from.outer * m, block), block, 0, in.data, ids.data, unsigned(ids.dtype),
         out.data, Long(from.outer), Long(m), Long(from.n), Long(units), unsigned(code), l.fault());
}

int bits_of(std::uint64_t values) {
  int bits = 0;
  while (bits < 64 && (values > std::uint64_t(1) << bits)) ++bits;
  return bits;
}

// Sorts elements by keys, stably. Each pass moves the elements from one half of the buffers to the other.
struct Sorter {
  Launcher& l;
  std::int64_t count;
  bool wide;                              // keys have 64 bits, else 32
  void* keys[2];
  unsigned* places[2];
  unsigned* counts;
  Long tile, tiles;
  bool ok = true;
  Sorter(Launcher& launcher, std::int64_t n, bool keys_of_64) : l(launcher), count(n), wide(keys_of_64) {
    // Few tiles, so that one block can add up their counts.
    tile = blocks_for(std::max<Long>(4096, blocks_for(n, 1024)), 256) * 256;
    tiles = blocks_for(n, tile);
    for (auto& k : keys) ok = (k = l.scratch(std::size_t(n) * (wide ? 8 : 4))) && ok;
    for (auto& p : places) ok = (p = static_cast<unsigned*>(l.scratch(std::size_t(n) * 4))) && ok;
    counts = static_cast<unsigned*>(l.scratch(std::size_t(tiles) * 256 * 4));
    ok = ok && counts;
  }
  void pass(unsigned shift, std::int64_t row) {
    SortPass s{count, tile, shift, row, {}};
    if (row && count < (Long(1) << 31)) s.by_row = divider_of(unsigned(row));
    const Grid grid{unsigned(tiles)};
    launch(l, wide ? "sort_count_64" : "sort_count_32", grid, {256}, 0, keys[0], places[0], counts, s);
    launch(l, "sort_scan", {}, {1024}, 0, counts, unsigned(tiles * 256));
    launch(l, wide ? "sort_move_64" : "sort_move_32", grid, {256}, 0, keys[0], places[0], keys[1], places[1], counts,
           s);
    std::swap(keys[0], keys[1]);
    std::swap(places[0], places[1]);
  }
  void by_keys(int bits) { for (int shift = 0; shift < bits; shift += 8) pass(unsigned(shift), 0); }
  void by_rows(std::int64_t rows, std::int64_t row) {
    for (int shift = 0; shift < bits_of(std::uint64_t(rows)); shift += 8) pass(unsigned(shift), row);
  }
};

// out[o, key] = (with `onto`, +=) the sum of all src[o, place] that have this key.
void sum_segments(Launcher& l, const Sorter& s, const View& src, const View& out, const Around& to, bool onto) {
  const std::size_t size = size_bytes(out.dtype), pack = std::size_t(pack_of(size));
  const int packed = to.inner % std::int64_t(pack) == 0 && aligned(src.data, size * pack) &&
                     aligned(out.data, size * pack);
  const unsigned x = power_above(packed ? to.inner / std::int64_t(pack) : to.inner, 128);
  const Grid block{x, threads / x};
  for (std::int64_t o = 0; o < to.outer; o += 65535) {
    Grid grid = RowShape::rows_grid(l, s.count, block);
    grid.y = unsigned(std::min<std::int64_t>(65535, to.outer - o));
    launch(l, name_in(RILLE_NAMES("sum_segments"), out.dtype), grid, block, 0,
           src.ptr<char>() + o * s.count * to.inner * std::int64_t(size), s.keys[0], s.places[0],
           out.ptr<char>() + o * to.n * to.inner * std::int64_t(size), Long(s.count), Long(to.n), Long(to.inner),
               packed,
           int(onto));
  }
}

constexpr std::int64_t keys_end = (std::int64_t(1) << 32) - 1;

// Sums the rows of `src` that have equal ids.
void add_rows(const Call& c, Launcher& l, const View& src, const View& ids, const View& out, const Around& to,
              FaultCode code, bool onto) {
  const std::int64_t m = ids.count();
  if (m == 0 || to.inner == 0) return;
  if (m >= keys_end || to.n >= keys_end)           // one key value marks an index out of range
    return c.fail("an index of %lld numbers into %lld rows: a CUDA device takes at most 2^32 - 2 of each",
                  (long long)m, (long long)to.n);
  Sorter s(l, m, false);
  if (!s.ok) return c.fail("no memory to sort %lld row numbers\n"
                           "work on smaller tensors or batches, or free tensors", (long long)m);
  launch(l, "sort_ids", grid_for(l, m), {threads}, 0, ids.data, unsigned(ids.dtype), Long(m), Long(to.n), s.keys[0],
         s.places[0], unsigned(code), l.fault());
  s.by_keys(bits_of(std::uint64_t(to.n)));
  sum_segments(l, s, src, out, to, onto);
}

std::size_t bytes_of(const View& v) { return std::size_t(v.count()) * size_bytes(v.dtype); }

}  // namespace

void embedding(const Call& c, Launcher& l, const Names&) {
  take_rows(l, c.in[0], c.in[1], c.out[0], Around(c.in[0], 0), embedding_id);
}
void embedding_grad(const Call& c, Launcher& l, const Names&) {
  l.fill(c.out[0].data, 0, bytes_of(c.out[0]));
  add_rows(c, l, c.in[0], c.in[1], c.out[0], Around(c.out[0], 0), embedding_id, false);
}
void embedding_add(const Call& c, Launcher& l, const Names&) {
  copy_view(l, c.in[0], c.out[0]);
  add_rows(c, l, c.in[1], c.in[2], c.out[0], Around(c.out[0], 0), embedding_id, true);
}
void index_select(const Call& c, Launcher& l, const Names&) {
  take_rows(l, c.in[0], c.in[1], c.out[0], Around(c.in[0], int(c.attrs->i[0])), index_select_number);
}
void index_add(const Call& c, Launcher& l, const Names&) {
  l.fill(c.out[0].data, 0, bytes_of(c.out[0]));
  add_rows(c, l, c.in[0], c.in[1], c.out[0], Around(c.out[0], int(c.attrs->i[0])), index_add_number, false);
}

void gather(const Call& c, Launcher& l, const Names&) {
  const View &a = c.in[0], &index = c.in[1], &out = c.out[0];
  const int dim = int(c.attrs->i[0]);
  View from = a;
  from.shape = index.shape;
  from.strides[dim] = 0;
  const View* const views[3] = {&index, &from, &out};
  const std::size_t size = size_bytes(a.dtype), id_size = size_bytes(index.dtype);
  each_windows<3>(l, views, c, 1, -1, [&](const Windows<3>& w) {
    const Long first = (static_cast<char*>(w.data[0]) - index.ptr<char>()) / std::int64_t(id_size);
    launch(l, RILLE_SIZED("gather", size), grid_for(l, w.units), {threads}, 0, w, unsigned(index.dtype),
           Long(a.shape[dim]), Long(a.strides[dim]), first);
  });
}

namespace {

View without(const View& v, int dim) {
  View w = v;
  w.shape.n = w.strides.n = v.shape.n - 1;
  for (int d = dim; d < w.shape.n; ++d) {
    w.shape[d] = v.shape[d + 1];
    w.strides[d] = v.strides[d + 1];
  }
  return w;
}

// Each thread walks the dimension in order; of several writes to one element the last one is kept.
void scatter_in_order(const Call& c, Launcher& l, const char* kernel) {
  const View &index = c.in[1], &src = c.in[2], &out = c.out[0];
  const int dim = int(c.attrs->i[0]);
  View to = out;
  to.shape = index.shape;
  const View i = without(index, dim), s = without(src, dim), o = without(to, dim);
  const View* const views[3] = {&i, &s, &o};
  const Steps steps{index.strides[dim], src.strides[dim], out.strides[dim]};
  const std::size_t id_size = size_bytes(index.dtype);
  each_windows<3>(l, views, c, 1, -1, [&](const Windows<3>& w) {
    const Long first = (static_cast<char*>(w.data[0]) - index.ptr<char>()) / std::int64_t(id_size);
    launch(l, kernel, grid_for(l, w.units), {threads}, 0, w, unsigned(index.dtype), Long(index.shape[dim]),
           Long(out.shape[dim]), steps, first);
  });
}

// One thread per index; of several writes to one element the last one in index order is kept. Returns false if this
// would not pay off, or if the tensor is too large.
bool scatter_claimed(const Call& c, Launcher& l) {
  const View &index = c.in[1], &src = c.in[2], &out = c.out[0];
  const int dim = int(c.attrs->i[0]);
  const std::int64_t m = index.count(), places = out.count(), lines = m / index.shape[dim];
  if (index.shape[dim] < 8 || lines >= 1 << 17 || m >= units_max || places >= (std::int64_t(1) << 32)) return false;
  auto* const owner = static_cast<unsigned*>(l.scratch(std::size_t(places) * 4));
  if (!owner) {
    c.fail("scatter: no memory for %lld places\n"
           "work on smaller tensors or batches, or free tensors", (long long)places);
    return true;
  }
  l.fill(owner, 0, std::size_t(places) * 4);
  View from = src, to = out;
  from.shape = to.shape = index.shape;
  to.strides[dim] = 0;
  const View* const views[3] = {&index, &from, &to};
  each_windows<3>(l, views, c, 1, -1, [&](const Windows<3>& w) {
    const unsigned type = unsigned(index.dtype);
    const Long n = out.shape[dim], along = out.strides[dim];
    launch(l, "scatter_claim", grid_for(l, w.units), {threads}, 0, w, type, n, along, owner);
    launch(l, RILLE_SIZED("scatter_put", size_bytes(out.dtype)), grid_for(l, w.units), {threads}, 0, w, type, n, along,
           static_cast<const unsigned*>(owner));
  });
  return true;
}

// Adds src to `out`: sorts all indices by the element of `out` they refer to. Returns false if the tensor is too large.
bool scatter_sorted(const Call& c, Launcher& l) {
  const View &index = c.in[1], &src = c.in[2], &out = c.out[0];
  const int dim = int(c.attrs->i[0]);
  const std::int64_t m = index.count(), places = out.count();
  if (m >= units_max || places >= (std::int64_t(1) << 32)) return false;
  Sorter s(l, m, false);
  View flat = src;
  flat.data = l.scratch(std::size_t(m) * size_bytes(src.dtype));
  flat.shape.n = flat.strides.n = index.shape.n;
  std::int64_t step = 1;
  for (int d = index.shape.n - 1; d >= 0; --d) {
    flat.shape[d] = index.shape[d];
    flat.strides[d] = step;
    step *= index.shape[d];
  }
  if (!s.ok || !flat.data) {
    c.fail("scatter_add: no memory to sort %lld numbers\n"
           "work on smaller tensors or batches, or free tensors", (long long)m);
    return true;
  }
  View from = src, to = out;
  from.shape = to.shape = index.shape;
  to.strides[dim] = 0;
  copy_view(l, from, flat);
  const View* const views[2] = {&index, &to};
  each_windows<2>(l, views, c, 1, -1, [&](const Windows<2>& w) {
    launch(l, "scatter_keys", grid_for(l, w.units), {threads}, 0, w, unsigned(index.dtype), Long(out.shape[dim]),
           Long(out.strides[dim]), s.keys[0], s.places[0]);
  });
  s.by_keys(bits_of(std::uint64_t(places)));
  View line = out;
  line.shape.n = line.strides.n = 1;
  line.shape[0] = places;
  line.strides[0] = 1;
  sum_segments(l, s, flat, line, Around(line, 0), true);
  return true;
}

}  // namespace

void scatter(const Call& c, Launcher& l, const Names&) {
  copy_view(l, c.in[0], c.out[0]);
  if (c.in[1].count() == 0) return;
  const DType t = c.out[0].dtype;
  if (!c.attrs->i[1]) {
    if (!scatter_claimed(c, l)) scatter_in_order(c, l, RILLE_SIZED("scatter", size_bytes(t)));
    return;
  }
  if (!scatter_sorted(c, l)) scatter_in_order(c, l, name_in(RILLE_NAMES("scatter_add"), t));
}

void sort(const Call& c, Launcher& l, const Names&) {
  const View& x = c.in[0];
  const std::int64_t n = x.shape[x.shape.n - 1], k = c.out[0].shape[x.shape.n - 1], count = x.count();
  if (count == 0 || k == 0) return;
  if (count >= (std::int64_t(1) << 32))
    return c.fail("sort: %lld elements; a CUDA device sorts at most 2^32 - 1", (long long)count);
  const bool wide = size_bytes(x.dtype) == 8;
  Sorter s(l, count, wide);
  if (!s.ok) return c.fail("sort: no memory for %lld places\n"
                           "work on smaller tensors or batches, or free tensors", (long long)count);
  launch(l, name_in(RILLE_NAMES("sort_begin"), x.dtype), grid_for(l, count), {threads}, 0, x.data, Long(count),
         int(c.attrs->i[0] == 1), s.keys[0], s.places[0]);
  s.by_keys(wide ? 64 : 32);
  s.by_rows(count / n, n);
  const std::int64_t rows = count / n;
  launch(l, name_in(RILLE_NAMES("sort_end"), x.dtype), grid_for(l, rows * k), {threads}, 0, x.data, s.places[0],
         Long(rows), Long(n), Long(k), c.out[0].data, c.out[1].data);
}

void tril(const Call& c, Launcher& l, const Names&) {
  const View& v = c.in[0];
  if (v.count() == 0) return;
  const std::int64_t m = v.shape[v.shape.n - 2], n = v.shape[v.shape.n - 1], rows = v.count() / n;
  const unsigned x = power_above(n, threads);
  const Grid block{x, threads / x};
  launch(l, RILLE_SIZED("tril", size_bytes(v.dtype)), RowShape::rows_grid(l, rows, block), block, 0, v.data,
         c.out[0].data, Long(rows), Long(m), Long(n), Long(c.attrs->i[0]), int(c.attrs->i[1] == 1));
}

}  // namespace rille::kernels::cuda
