// Sorts each row: sorts the indices by value, then gathers the values.
#include <algorithm>
#include <numeric>

#include "kernels/nest.hpp"

namespace rille::kernels {

namespace {

// std::sort cannot be stopped, so longer rows are sorted in pieces of this many elements, which are then merged.
constexpr std::int64_t sorted_at_once = 1 << 20;
constexpr std::int64_t merged_at_once = 1 << 16;

// out = [a, b) merged with [b, end)
template <class First>
void merge(const Call& c, const std::int64_t* a, const std::int64_t* b, const std::int64_t* end, std::int64_t* out,
           const First& first) {
  const std::int64_t *x = a, *y = b;
  for (std::int64_t i = 0, n = end - a; i < n; ++i) {
    if (i % merged_at_once == 0 && c.stopped()) return;
    out[i] = y == end || (x < b && !first(*y, *x)) ? *x++ : *y++;
  }
}

// Sorts n positions; `other` has room for n. Returns the array that holds the sorted positions.
template <class First>
const std::int64_t* sort_all(const Call& c, std::int64_t* places, std::int64_t* other, std::int64_t n,
                             const First& first) {
  for (std::int64_t at = 0; at < n && !c.stopped(); at += sorted_at_once)
    std::sort(places + at, places + std::min(n, at + sorted_at_once), first);
  for (std::int64_t width = sorted_at_once; width < n && !c.stopped(); width *= 2) {
    for (std::int64_t at = 0; at < n; at += 2 * width)
      merge(c, places + at, places + std::min(n, at + width), places + std::min(n, at + 2 * width), other + at, first);
    std::swap(places, other);
  }
  return places;
}

// Finds and sorts the first k of n positions: the best k so far are sorted together with each further piece in turn.
template <class First>
void sort_some(const Call& c, std::int64_t* places, std::int64_t k, std::int64_t n, const First& first) {
  for (std::int64_t at = k; at < n && !c.stopped(); at += sorted_at_once) {
    std::int64_t* const rest = std::copy(places + at, places + std::min(n, at + sorted_at_once), places + k);
    std::partial_sort(places, places + k, rest, first);
  }
}

template <class T>
void sort_rows(const Call& c) {
  const View& x = c.in[0];
  const std::int64_t n = x.shape[x.shape.n - 1], k = c.out[0].shape[x.shape.n - 1], rows = n ? x.count() / n : 0;
  const bool descending = c.attrs->i[0] == 1, all = k == n || k > sorted_at_once;
  const auto threads = std::size_t(omp_get_max_threads());
  const std::int64_t room = all && n > sorted_at_once ? 2 * n : n;
  auto* scratch = static_cast<std::int64_t*>(c.lane->scratch(threads * std::size_t(room) * sizeof(std::int64_t)));
  if (!scratch && n)
    return c.fail("sort: no memory for %lld places\nwork on smaller tensors or batches, or free tensors", (long long)n);
  generic::for_stoppable(c, rows, n * 16, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t* const places = scratch + omp_get_thread_num() * room;
    for (std::int64_t r = begin; r < end; ++r) {
      const T* row = x.ptr<T>() + r * n;
      const auto less = [row](std::int64_t a, std::int64_t b) {
        return row[a] < row[b] || (row[b] != row[b] && row[a] == row[a]);
      };
      const auto first = [&](std::int64_t a, std::int64_t b) {
        return descending ? less(b, a) || (!less(a, b) && a < b) : less(a, b) || (!less(b, a) && a < b);
      };
      std::iota(places, places + n, std::int64_t(0));
      const std::int64_t* sorted = places;
      if (all) sorted = sort_all(c, places, places + n, n, first);
      else sort_some(c, places, k, n, first);
      if (n > sorted_at_once && c.stopped()) return;  // `sorted` is undefined after a stop
      for (std::int64_t i = 0; i < k; ++i) {
        c.out[0].ptr<T>()[r * k + i] = row[sorted[i]];
        c.out[1].ptr<std::int64_t>()[r * k + i] = sorted[i];
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
