// Sorts each row: sorts the indices by value, then gathers the values.
#include <algorithm>
#include <numeric>

#include "kernels/nest.hpp"

namespace rille::kernels {

namespace {

template <class T>
void sort_rows(const Call& c) {
  const View& x = c.in[0];
  const std::int64_t n = x.shape[x.shape.n - 1], k = c.out[0].shape[x.shape.n - 1], rows = n ? x.count() / n : 0;
  const bool descending = c.attrs->i[0] == 1;
  const auto threads = std::size_t(omp_get_max_threads());
  auto* scratch = static_cast<std::int64_t*>(c.lane->scratch(threads * std::size_t(n) * sizeof(std::int64_t)));
  if (!scratch && n)
    return c.fail("sort: no memory for %lld places\nwork on smaller tensors or batches, or free tensors", (long long)n);
  generic::for_share(rows, n * 16, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t *places = scratch + omp_get_thread_num() * n, *last = places + n;
    for (std::int64_t r = begin; r < end; ++r) {
      const T* row = x.ptr<T>() + r * n;
      const auto less = [row](std::int64_t a, std::int64_t b) {
        return row[a] < row[b] || (row[b] != row[b] && row[a] == row[a]);
      };
      const auto first = [&](std::int64_t a, std::int64_t b) {
        return descending ? less(b, a) || (!less(a, b) && a < b) : less(a, b) || (!less(b, a) && a < b);
      };
      std::iota(places, last, std::int64_t(0));
      if (k == n) std::sort(places, last, first);
      else std::partial_sort(places, places + k, last, first);
      for (std::int64_t i = 0; i < k; ++i) {
        c.out[0].ptr<T>()[r * k + i] = row[places[i]];
        c.out[1].ptr<std::int64_t>()[r * k + i] = places[i];
      }
    }
  });
}

void sort_wide(const Call& c) { RILLE_NUMBERS(c.in[0].dtype, sort_rows<T>(c)); }

}  // namespace

// in: contiguous rows; out: the first k elements of each row in sorted order, and their indices, i64. attrs.i[0] = 1:
// descending order. The sort is stable; a NaN is larger than any number.
void sort(const Call& c) { widened(c, &sort_wide); }

}  // namespace rille::kernels
