// Runs f32 kernels on f16 and bf16: converts the operands before the kernel and the results after it.
#include <algorithm>

#include "kernels/kernels.hpp"

namespace rille::kernels {

namespace {

constexpr int most_operands = 16;

std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// The dimensions of a view in memory order, the largest stride first, so that a copy runs along memory. If elements
// overlap (strides of 0), the dimensions keep their order.
struct Order {
  int at[max_rank];
  explicit Order(const View& v) {
    bool apart = true;
    for (int d = 0; d < v.shape.n; ++d) {
      at[d] = d;
      apart = apart && (v.shape[d] == 1 || v.strides[d] > 0);
    }
    if (apart) std::stable_sort(at, at + v.shape.n, [&](int x, int y) { return v.strides[x] > v.strides[y]; });
  }
  View of(const View& v) const {
    View turned = v;
    for (int d = 0; d < v.shape.n; ++d) {
      turned.shape[d] = v.shape[at[d]];
      turned.strides[d] = v.strides[at[d]];
    }
    return turned;
  }
};

// A dense f32 view on `memory` whose elements have the memory order of `v`.
View wide(const View& v, char* memory) {
  const Order order(v);
  View w = v;
  w.data = memory;
  w.dtype = DType::f32;
  std::int64_t step = 1;
  for (int i = v.shape.n - 1; i >= 0; --i) {
    w.strides[order.at[i]] = step;
    step *= v.shape[order.at[i]];
  }
  return w;
}

// Copies `from` to `to`; one of them is `half`, the other is the f32 copy of `half`.
void convert(const Call& c, const View& half, const View& from, const View& to) {
  const Order order(half);
  const View in = order.of(from), out = order.of(to);
  Call one = c;
  one.in = &in;
  one.n_in = 1;
  one.out = &out;
  one.n_out = 1;
  copy(one);
}

}  // namespace

void widened(const Call& c, Kernel kernel) {
  const auto half = [](const View& v) { return v.data && is_half(v.dtype); };
  std::size_t bytes = 0;
  for (int i = 0; i < c.n_in; ++i)
    if (half(c.in[i])) bytes += padded(std::size_t(c.in[i].count()) * 4);
  for (int i = 0; i < c.n_out; ++i)
    if (half(c.out[i])) bytes += padded(std::size_t(c.out[i].count()) * 4);
  if (bytes == 0) return kernel(c);
  if (c.n_in + c.n_out > most_operands)
    return c.fail("an operation with f16 or bf16 has %d operands, more than its kernel can take", c.n_in + c.n_out);
  char* memory = static_cast<char*>(c.lane->staging(bytes));
  if (!memory)
    return c.fail("no memory for %zu bytes of f32 copies\nwork on smaller tensors or batches, or free tensors", bytes);
  View views[most_operands];
  for (int i = 0; i < c.n_in + c.n_out; ++i) {
    const View& v = i < c.n_in ? c.in[i] : c.out[i - c.n_in];
    views[i] = v;
    if (!half(v)) continue;
    views[i] = wide(v, memory);
    memory += padded(std::size_t(v.count()) * 4);
    if (i < c.n_in) convert(c, v, v, views[i]);
  }
  Call inner = c;
  inner.in = views;
  inner.out = views + c.n_in;
  kernel(inner);
  for (int i = 0; i < c.n_out; ++i)
    if (half(c.out[i])) convert(c, c.out[i], views[c.n_in + i], c.out[i]);
}

void widened_rows(const Call& c, Kernel kernel, unsigned whole) {
  constexpr std::int64_t elements = 65536;
  if (c.attrs->i[apart_at]) return kernel(c);
  const View& x = c.in[0];
  const std::int64_t n = x.shape.n ? x.shape[x.shape.n - 1] : 1, rows = n ? x.count() / n : 0;
  const std::int64_t each = n < elements ? elements / (n ? n : 1) : 1;
  if (!is_half(x.dtype) || rows <= each || c.n_in + c.n_out > most_operands) return widened(c, kernel);
  View views[most_operands];
  for (std::int64_t first = 0; first < rows && !c.stopped(); first += each) {
    const std::int64_t m = std::min(each, rows - first);
    for (int i = 0; i < c.n_in + c.n_out; ++i) {
      const View& v = i < c.n_in ? c.in[i] : c.out[i - c.n_in];
      View& part = views[i];
      part = v;
      if (!v.data || (i < c.n_in && (whole >> i & 1))) continue;
      const std::int64_t row = v.count() / rows;
      part.shape = part.strides = Dims{};
      part.shape.push(m);
      part.shape.push(row);
      part.strides.push(row);
      part.strides.push(1);
      part.data = static_cast<char*>(v.data) + first * row * std::int64_t(size_bytes(v.dtype));
    }
    Call slab = c;
    slab.in = views;
    slab.out = views + c.n_in;
    widened(slab, kernel);
  }
}

}  // namespace rille::kernels
