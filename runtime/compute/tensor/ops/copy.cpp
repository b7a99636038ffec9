// Operations that copy elements in another order or several times: cat, flip, roll, tile, pad.
#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

Result<Tensor> contiguous(const Tensor& a) {
  RILLE_CHECK(need("contiguous", a));
  return a.is_contiguous() ? Result<Tensor>(a) : clone(a);
}

Result<Tensor> clone(const Tensor& a) {
  RILLE_CHECK(need("clone", a));
  return apply_one(OpId::contiguous, {}, {a}, {a.dtype(), a.shape()});
}

namespace {

// Whether the parts lie one after another in one tensor's memory, so that joining them needs no copy.
bool adjacent(const std::vector<Tensor>& parts, int d) {
  const auto& first = parts[0].impl();
  std::int64_t at = first->window.offset;
  for (const auto& p : parts) {
    const auto& w = p.impl()->window;
    if (p.impl()->storage != first->storage || !(w.strides == first->window.strides) || w.offset != at) return false;
    at += w.shape[d] * w.strides[d];
  }
  return true;
}

// share: returns a view instead of a copy if the parts are adjacent.
Result<Tensor> joined(const std::vector<Tensor>& parts, int dim, bool share) {
  if (parts.empty()) return bad("cat: no tensors");
  for (const auto& p : parts) RILLE_CHECK(need("cat", p));
  RILLE_TRY(const int d, normal_dim("cat", dim, parts[0].rank()));
  Dims shape = parts[0].shape();
  shape[d] = 0;
  bool grad = false;
  for (const auto& p : parts) {
    RILLE_CHECK(need_same_dtype("cat", parts[0], p));
    Dims rest = p.shape();
    if (rest.n == shape.n) rest[d] = 0;
    Dims expected = shape;
    expected[d] = 0;
    if (!(rest == expected)) {
      return bad(fmt::format("cat: {} and {}: sizes other than dimension {} differ", to_string(parts[0].shape()),
                             to_string(p.shape()), d + 1));
    }
    shape[d] += p.shape()[d];
    RILLE_CHECK(check_dims(shape));
    grad = grad || p.requires_grad();
  }
  if (share && !(grad && parts[0].graph().grad_enabled()) && adjacent(parts, d))
    return make_window(parts[0], 0, shape, parts[0].strides());
  kernels::Attrs attrs;
  attrs.i[0] = d;
  return apply_one(OpId::cat, attrs, parts, {parts[0].dtype(), shape});
}

}  // namespace

Result<Tensor> cat(const std::vector<Tensor>& parts, int dim) { return joined(parts, dim, false); }
// Joins gradients, which are never written in place: returns a view if the parts are adjacent.
Result<Tensor> cat_in_place(const std::vector<Tensor>& parts, int dim) { return joined(parts, dim, true); }

// Copies through a window with negative strides, which exists only inside this function.
Result<Tensor> flip(const Tensor& a, const std::vector<int>& dims) {
  RILLE_CHECK(need("flip", a));
  Dims strides = a.strides();
  kernels::Attrs attrs;
  std::int64_t start = 0;
  for (const int dim : dims) {
    RILLE_TRY(const int d, normal_dim("flip", dim, a.rank()));
    if (attrs.i[0] >> d & 1)
      return bad(fmt::format("flip: dimension {} of {} is named twice", d + 1, to_string(a.shape())));
    attrs.i[0] |= std::int64_t(1) << d;
    strides[d] = -strides[d];
    start += (a.shape()[d] - 1) * a.strides()[d];
  }
  if (a.count() == 0) return clone(a);
  const Tensor backwards = make_window(a, start, a.shape(), strides);
  const Tensor out = make_tensor(a.graph(), a.dtype(), a.shape());
  RILLE_CHECK(record(a.graph(), OpId::flip, attrs, {backwards}, {out}));
  attach_grad(OpId::flip, attrs, {a}, {out});
  return out;
}

Result<Tensor> roll(const Tensor& a, std::int64_t shift, int dim) {
  RILLE_CHECK(need("roll", a));
  RILLE_TRY(const int d, normal_dim("roll", dim, a.rank()));
  const std::int64_t n = a.shape()[d];
  const std::int64_t by = n ? (shift % n + n) % n : 0;
  if (by == 0) return clone(a);
  RILLE_TRY(const auto tail, narrow(a, d, n - by, by));
  RILLE_TRY(const auto head, narrow(a, d, 0, n - by));
  return cat({tail, head}, d);
}

Result<Tensor> stack(const std::vector<Tensor>& parts, int dim) {
  std::vector<Tensor> wide;
  for (const auto& p : parts) {
    RILLE_CHECK(need("stack", p));
    if (!(p.shape() == parts[0].shape())) {
      return bad(
          fmt::format("stack: {} and {}: expected the same shape", to_string(parts[0].shape()), to_string(p.shape())));
    }
    RILLE_TRY(auto one, unsqueeze(p, dim));
    wide.push_back(std::move(one));
  }
  return cat(wide, dim);
}

namespace {

// Copies `t` if it shares the memory of `a`, because a write to the result must not change the operand.
Result<Tensor> copied(const Tensor& a, Result<Tensor> t) {
  return t && t->impl()->storage == a.impl()->storage ? clone(*t) : t;
}

}  // namespace

// Example: repeats [a, b] x and y times by viewing it as [1, a, 1, b], expanding to [x, a, y, b], and flattening to
// [x a, y b].
Result<Tensor> tile(const Tensor& a, const Dims& times) {
  RILLE_CHECK(need("tile", a));
  Dims apart, grown, shape;
  const int extra = times.n - a.rank();
  bool fits = extra >= 0 && times.n + a.rank() <= kernels::max_rank;
  for (int i = 0; fits && i < times.n; ++i) {
    const std::int64_t size = i < extra ? 1 : a.shape()[i - extra];
    fits = times[i] >= 0;
    apart.push(1);
    grown.push(times[i]);
    if (i >= extra) {
      apart.push(size);
      grown.push(size);
    }
  }
  if (!fits) {
    return bad(fmt::format("tile: {} by {}: expected a number for each dimension, {} in all at most",
                           to_string(a.shape()), to_string(times), kernels::max_rank - a.rank()));
  }
  RILLE_TRY(const auto seen, view(a, apart));
  RILLE_TRY(const auto wide, expand(seen, grown));
  for (int i = 0; i < times.n; ++i) shape.push(times[i] * (i < extra ? 1 : a.shape()[i - extra]));
  return copied(a, reshape(wide, shape));
}

Result<Tensor> repeat_interleave(const Tensor& a, std::int64_t times, int dim) {
  RILLE_CHECK(need("repeat_interleave", a));
  RILLE_TRY(const int d, normal_dim("repeat_interleave", dim, a.rank()));
  if (times < 0)
    return bad(fmt::format("repeat_interleave: {} cannot be repeated {} times: expected 0 or more",
                           to_string(a.shape()), times));
  RILLE_TRY(const auto apart, unsqueeze(a, d + 1));
  Dims grown = apart.shape(), shape = a.shape();
  grown[d + 1] = times;
  RILLE_TRY(const auto wide, expand(apart, grown));
  shape[d] *= times;
  return copied(a, reshape(wide, shape));
}

Result<Tensor> pad(const Tensor& a, const std::vector<std::int64_t>& edges, double value) {
  RILLE_CHECK(need("pad", a));
  if (edges.size() % 2 || int(edges.size()) > 2 * a.rank()) {
    return bad(fmt::format("pad: {} with {} edges: expected two for each dimension, from the last",
                           to_string(a.shape()), edges.size()));
  }
  Tensor t = a;
  RILLE_TRY(const auto constant, full(a.graph(), {}, value, a.dtype()));
  for (std::size_t i = 0; i < edges.size(); i += 2) {
    const int d = a.rank() - 1 - int(i / 2);
    std::vector<Tensor> parts{t};
    for (const std::size_t side : {i, i + 1}) {
      if (edges[side] < 0)
        return bad(fmt::format("pad: an edge of {}: expected 0 or more", edges[side]),
                   "x:narrow(dimension, start, length) cuts elements off");
      if (edges[side] == 0) continue;
      Dims shape = t.shape();
      shape[d] = edges[side];
      RILLE_TRY(auto edge, expand(constant, shape));
      parts.insert(side == i ? parts.begin() : parts.end(), std::move(edge));
    }
    if (parts.size() > 1) { RILLE_TRY(t, cat(parts, d)); }
  }
  return copied(a, t);
}

void gradient::contiguous(Backward& b) { b.set(0, b.g()); }

void gradient::cat(Backward& b) {
  const int dim = int(b.attrs().i[0]);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    const auto length = b.in_spec(i).shape[dim];
    if (b.needs(i)) b.set(i, b(tensor::narrow(b.g(), dim, at, length)));
    at += length;
  }
}

void gradient::flip(Backward& b) {
  std::vector<int> dims;
  for (int d = 0; d < b.g().rank(); ++d)
    if (b.attrs().i[0] >> d & 1) dims.push_back(d);
  b.set(0, b(tensor::flip(b.g(), dims)));
}

}  // namespace rille::tensor
