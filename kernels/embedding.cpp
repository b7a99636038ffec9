// Looks up rows of a table by index.
//
// The gradient does not depend on the threads: each thread owns a range of the table's rows and adds the gradients of
// the ids in its range in input order.
#include <string.h>

#include "kernels/ids.hpp"
#include "kernels/nest.hpp"

namespace rille::kernels::RILLE_ISA {

// in: weight [n, c], ids (contiguous integers); out: the row of each id, [ids.., c]
void embedding(const Call& c) {
  const View &weight = c.in[0], &ids = c.in[1];
  const int64_t rows = ids.count(), n = weight.shape[0], width = weight.shape[1];
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t id = id_at(ids, i);
    if (id < 0 || id >= n)
      return c.fail(
          "embedding: id %lld at position %lld; the table has rows 0 to %lld\n"
          "ids and positions count from 0",
          (long long)id, (long long)i, (long long)n - 1);
  }
  const size_t bytes = size_t(width) * size_bytes(weight.dtype);
  for_stoppable(c, rows, width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      memcpy(c.out[0].ptr<char>() + size_t(i) * bytes, weight.ptr<char>() + size_t(id_at(ids, i)) * bytes, bytes);
  });
}

// in: gradient [ids.., c], ids; out: the gradient of weight, [n, c], zeroed first
void embedding_grad(const Call& c) {
  const View &g = c.in[0], &ids = c.in[1], &out = c.out[0];
  const int64_t rows = ids.count(), n = out.shape[0], width = out.shape[1];
  RILLE_FLOATS(out.dtype, for_share(n, width + rows, [&](int64_t begin, int64_t end) {
                 memset(out.ptr<T>() + begin * width, 0, size_t((end - begin) * width) * sizeof(T));
                 for (int64_t i = 0; i < rows; ++i) {
                   if (i % 4096 == 0 && c.stopped()) return;
                   const int64_t id = id_at(ids, i);
                   if (id < begin || id >= end) continue;
                   T* o = out.ptr<T>() + id * width;
                   const T* x = g.ptr<T>() + i * width;
                   for (int64_t j = 0; j < width; ++j) o[j] += x[j];
                 }
               }));
}

// Sums the gradients of one id in input order, then adds the sum to the row: the same bits as embedding_grad followed
// by an add. `first` and `next` chain the occurrences of each id, so that rows without a gradient cost nothing.
template <class T>
static void add_rows(const Call& c, int32_t* next, const int32_t* first) {
  const View &g = c.in[1], &ids = c.in[2], &out = c.out[0];
  const int64_t rows = ids.count(), width = out.shape[1];
  constexpr int64_t columns = 256;
  for_stoppable(c, rows, width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (first[id_at(ids, i)] != i) continue;
      T* o = out.ptr<T>() + id_at(ids, i) * width;
      for (int64_t from = 0; from < width; from += columns) {
        const int64_t n = width - from < columns ? width - from : columns;
        T sum[columns];
        for (int64_t j = 0; j < n; ++j) sum[j] = T(0) + g.ptr<T>()[i * width + from + j];
        for (int64_t k = next[i]; k >= 0; k = next[k])
          for (int64_t j = 0; j < n; ++j) sum[j] += g.ptr<T>()[k * width + from + j];
        for (int64_t j = 0; j < n; ++j) o[from + j] += sum[j];
      }
    }
  });
}

// in: base [n, c], gradient, ids; out: base + embedding_grad; out may alias base
void embedding_add(const Call& c) {
  const View &base = c.in[0], &ids = c.in[2], &out = c.out[0];
  const int64_t rows = ids.count(), n = out.shape[0];
  for (int64_t i = 0; i < rows; ++i)
    if (id_at(ids, i) < 0 || id_at(ids, i) >= n)
      return c.fail(
          "embedding: id %lld at position %lld; the table has rows 0 to %lld\n"
          "ids and positions count from 0",
          (long long)id_at(ids, i), (long long)i, (long long)n - 1);
  int32_t* const first = static_cast<int32_t*>(c.lane->scratch(size_t(n + rows) * sizeof(int32_t)));
  if (!first)
    return c.fail(
        "embedding: no memory for a table of %lld entries\nwork on smaller tensors or batches, or free tensors",
        (long long)(n + rows));
  int32_t* const next = first + n;
  if (out.data != base.data) {
    const int64_t row = out.shape[1] * size_bytes(out.dtype);
    for_stoppable(c, n, row, [&](int64_t begin, int64_t end) {
      memcpy(out.ptr<char>() + begin * row, base.ptr<char>() + begin * row, size_t((end - begin) * row));
    });
  }
  memset(first, 0xff, size_t(n) * sizeof(int32_t));
  for (int64_t i = rows - 1; i >= 0; --i) {
    next[i] = first[id_at(ids, i)];
    first[id_at(ids, i)] = int32_t(i);
  }
  RILLE_FLOATS(out.dtype, add_rows<T>(c, next, first));
}

}  // namespace rille::kernels::RILLE_ISA
