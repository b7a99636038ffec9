// Gather and its gradient. The gradient is deterministic: each thread owns a range of the table's rows and adds the
// gradients of its ids in the order in which they stand.
#include "kernels/embedding.hpp"

#include <string.h>

#include "kernels/ids.hpp"
#include "kernels/nest.hpp"

namespace rille::kernels::RILLE_ISA {

void embedding(const Call& c) {
  const View &weight = c.in[0], &ids = c.in[1];
  const int64_t rows = ids.count(), n = weight.shape[0], width = weight.shape[1];
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t id = id_at(ids, i);
    if (id < 0 || id >= n)
      return c.fail("embedding: id %lld at position %lld; the table has rows 0 to %lld", (long long)id,
                    (long long)i, (long long)n - 1);
  }
  const size_t bytes = size_t(width) * size_bytes(weight.dtype);
  for_share(rows, width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      memcpy(c.out[0].ptr<char>() + size_t(i) * bytes, weight.ptr<char>() + size_t(id_at(ids, i)) * bytes, bytes);
  });
}

void embedding_grad(const Call& c) {
  const View &g = c.in[0], &ids = c.in[1], &out = c.out[0];
  const int64_t rows = ids.count(), n = out.shape[0], width = out.shape[1];
  RILLE_FLOATS(out.dtype, for_share(n, width + rows, [&](int64_t begin, int64_t end) {
    memset(out.ptr<T>() + begin * width, 0, size_t((end - begin) * width) * sizeof(T));
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t id = id_at(ids, i);
      if (id < begin || id >= end) continue;
      T* o = out.ptr<T>() + id * width;
      const T* x = g.ptr<T>() + i * width;
      for (int64_t j = 0; j < width; ++j) o[j] += x[j];
    }
  }));
}

}  // namespace rille::kernels::RILLE_ISA
