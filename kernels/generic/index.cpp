// Gathers and scatters elements by index. Indices are integers of any type and count from 0; an index out of range
// fails with its value and position. Compiled once, because memory limits these kernels' speed. One thread writes each
// part of the output, in index order, so the bits do not depend on the number of threads.
#include <cstring>

#include "kernels/ids.hpp"
#include "kernels/kernels.hpp"
#include "kernels/nest.hpp"

namespace rille::kernels {

namespace {

using generic::for_share;
using generic::for_stoppable;

template <class I>
bool all_fit(const I* ids, std::int64_t count, std::int64_t n) {
  int out = 0;  // no branches, so that the loop vectorizes
  for (std::int64_t i = 0; i < count; ++i) out |= std::uint64_t(std::int64_t(ids[i])) >= std::uint64_t(n);
  return out == 0;
}

bool numbers_fit(const Call& c, const char* name, const View& index, std::int64_t n) {
  if (index.dtype == DType::i64 ? all_fit(index.ptr<std::int64_t>(), index.count(), n)
                                : index.dtype == DType::i32 && all_fit(index.ptr<std::int32_t>(), index.count(), n))
    return true;
  for (std::int64_t i = 0, count = index.count(); i < count; ++i) {
    const std::int64_t id = id_at(index, i);
    if (id >= 0 && id < n) continue;
    c.fail(
        "%s: index %lld at position %lld; there are indices 0 to %lld\n"
        "indices and positions count from 0",
        name, (long long)id, (long long)i, (long long)n - 1);
    return false;
  }
  return true;
}

// A contiguous tensor viewed as [outer, n, inner], where n is the size of dimension `dim`.
struct Around {
  std::int64_t outer = 1, n, inner = 1;
  Around(const View& v, int dim) : n(v.shape[dim]) {
    for (int d = 0; d < dim; ++d) outer *= v.shape[d];
    for (int d = dim + 1; d < v.shape.n; ++d) inner *= v.shape[d];
  }
};

// Whether v is contiguous with the given shape.
bool dense(const View& v, const Dims& shape) {
  std::int64_t step = 1;
  for (int d = shape.n - 1; d >= 0; --d) {
    if (shape[d] != 1 && v.strides[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

// Offset in v of position `at`, which counts over dimensions [first, last) of `shape`.
std::int64_t offset(const Dims& shape, const View& v, int first, int last, std::int64_t at) {
  std::int64_t sum = 0;
  for (int d = last - 1; d >= first; --d) {
    sum += at % shape[d] * v.strides[d];
    at /= shape[d];
  }
  return sum;
}

constexpr std::int64_t looks = 4096;  // elements between two calls of Call::stopped()

// For each index (c.in[1]) of one outer part, calls f(position in index, offset in v without dimension `dim`, index).
template <class F>
void each_number(const Call& c, const View& v, int dim, std::int64_t outer, const F& f) {
  const View& index = c.in[1];
  const Around part(index, dim);
  const std::int64_t before = offset(index.shape, v, 0, dim, outer);
  for (std::int64_t j = 0; j < part.n; ++j) {
    if ((part.inner > looks || j % looks == 0) && c.stopped()) return;
    for (std::int64_t i = 0; i < part.inner; ++i) {
      const std::int64_t at = (outer * part.n + j) * part.inner + i;
      f(at, before + offset(index.shape, v, dim + 1, index.shape.n, i), id_at(index, at));
    }
  }
}

template <class T>
void gather_sized(const Call& c) {
  const View &a = c.in[0], &index = c.in[1];
  const int dim = int(c.attrs->i[0]);
  const Around part(index, dim);
  for_stoppable(c, part.outer, part.n * part.inner * 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      each_number(c, a, dim, o, [&](std::int64_t at, std::int64_t base, std::int64_t id) {
        c.out[0].ptr<T>()[at] = a.ptr<T>()[base + id * a.strides[dim]];
      });
  });
}

template <class T, bool add>
void scatter_sized(const Call& c) {
  const View &index = c.in[1], &src = c.in[2], &out = c.out[0];
  const int dim = int(c.attrs->i[0]);
  const Around part(index, dim);
  const bool straight = dense(src, index.shape);
  for_stoppable(c, part.outer, part.n * part.inner * 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      each_number(c, out, dim, o, [&](std::int64_t at, std::int64_t base, std::int64_t id) {
        T& place = out.ptr<T>()[base + id * out.strides[dim]];
        const T x = src.ptr<T>()[straight ? at : offset(index.shape, src, 0, index.shape.n, at)];
        place = add ? T(place + x) : x;
      });
  });
}

void scatter_wide(const Call& c) {
  if (!numbers_fit(c, c.attrs->i[1] ? "scatter_add" : "scatter", c.in[1], c.in[0].shape[int(c.attrs->i[0])])) return;
  Call first = c;
  first.n_in = 1;
  copy(first);
  if (c.in[1].count() == 0) return;
  if (c.attrs->i[1]) {
    RILLE_NUMBERS(c.out[0].dtype, scatter_sized<T, true>(c));
    return;
  }
  switch (size_bytes(c.out[0].dtype)) {
    case 8: return scatter_sized<std::uint64_t, false>(c);
    case 4: return scatter_sized<std::uint32_t, false>(c);
    case 2: return scatter_sized<std::uint16_t, false>(c);
    default: return scatter_sized<std::uint8_t, false>(c);
  }
}

void index_add_wide(const Call& c) {
  const View &src = c.in[0], &index = c.in[1], &out = c.out[0];
  const Around to(out, int(c.attrs->i[0]));
  if (!numbers_fit(c, "index_add", index, to.n)) return;
  const std::int64_t m = index.count();
  RILLE_NUMBERS(out.dtype, {
    for_share(to.outer * to.n, to.inner + m, [&](std::int64_t begin, std::int64_t end) {
      std::memset(out.ptr<T>() + begin * to.inner, 0, std::size_t((end - begin) * to.inner) * sizeof(T));
      for (std::int64_t r = begin / to.n * m; r < (end + to.n - 1) / to.n * m; ++r) {
        if (r % looks == 0 && c.stopped()) return;
        const std::int64_t row = r / m * to.n + id_at(index, r % m);
        if (row < begin || row >= end) continue;
        T* o = out.ptr<T>() + row * to.inner;
        const T* x = src.ptr<T>() + r * to.inner;
        for (std::int64_t j = 0; j < to.inner; ++j) o[j] = T(o[j] + x[j]);
      }
    });
  });
}

}  // namespace

// in: a, index (contiguous, as many dimensions as a); out[0] has index's shape: out[.., j, ..] =
// a[.., index[.., j, ..], ..] along dimension attrs.i[0]
void gather(const Call& c) {
  if (c.out[0].count() == 0 || !numbers_fit(c, "gather", c.in[1], c.in[0].shape[int(c.attrs->i[0])])) return;
  switch (size_bytes(c.in[0].dtype)) {
    case 8: return gather_sized<std::uint64_t>(c);
    case 4: return gather_sized<std::uint32_t>(c);
    case 2: return gather_sized<std::uint16_t>(c);
    default: return gather_sized<std::uint8_t>(c);
  }
}

// in: a, index (contiguous), src (index's shape). out[0], contiguous: a, with src written to the positions that gather
// would read; if several are equal, the last one is written. attrs.i[0]: the dimension; attrs.i[1] = 1: adds src in
// index order instead.
void scatter(const Call& c) { c.attrs->i[1] ? widened(c, &scatter_wide) : scatter_wide(c); }

// in: a [outer, n, inner], index [m]; out: [outer, m, inner]; all contiguous. attrs.i[0]: the dimension of size n
void index_select(const Call& c) {
  const View &a = c.in[0], &index = c.in[1];
  const Around from(a, int(c.attrs->i[0]));
  if (c.out[0].count() == 0 || !numbers_fit(c, "index_select", index, from.n)) return;
  const std::int64_t m = index.count();
  const std::size_t bytes = std::size_t(from.inner) * size_bytes(a.dtype);
  for_stoppable(c, from.outer * m, from.inner, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t row = r / m * from.n + id_at(index, r % m);
      std::memcpy(c.out[0].ptr<char>() + std::size_t(r) * bytes, a.ptr<char>() + std::size_t(row) * bytes, bytes);
    }
  });
}

// The gradient of index_select. in: src [outer, m, inner], index [m]; out: [outer, n, inner], zeroed first.
void index_add(const Call& c) { widened(c, &index_add_wide); }

// in: contiguous matrices; out: the same with zeros above diagonal attrs.i[0], or below it if attrs.i[1] = 1
void tril(const Call& c) {
  const View& v = c.in[0];
  const std::int64_t m = v.shape[v.shape.n - 2], n = v.shape[v.shape.n - 1], diagonal = c.attrs->i[0];
  const bool upper = c.attrs->i[1] == 1;
  const std::size_t size = size_bytes(v.dtype);
  for_stoppable(c, n ? v.count() / n : 0, n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::int64_t cut = r % m + diagonal + (upper ? 0 : 1);  // first column of the upper part
      cut = cut < 0 ? 0 : cut > n ? n : cut;
      const char* x = v.ptr<char>() + std::size_t(r * n) * size;
      char* o = c.out[0].ptr<char>() + std::size_t(r * n) * size;
      const std::size_t left = std::size_t(cut) * size, right = std::size_t(n - cut) * size;
      if (upper) std::memset(o, 0, left), std::memcpy(o + left, x + left, right);
      else std::memcpy(o, x, left), std::memset(o + left, 0, right);
    }
  });
}

}  // namespace rille::kernels
