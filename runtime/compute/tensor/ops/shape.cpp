// Views: operations that give the same memory another shape.
#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

Result<Tensor> cat_in_place(const std::vector<Tensor>& parts, int dim);  // defined in copy.cpp

namespace {

// Replaces a size of -1 by the size that makes the element counts equal. Error invalid: the counts differ.
Result<Dims> full_shape(const char* op, const Tensor& a, const Dims& wanted) {
  Dims shape = wanted;
  int open = -1;
  for (int i = 0; i < wanted.n; ++i) shape[i] = std::max<std::int64_t>(wanted[i], 0);
  RILLE_CHECK(check_dims(shape));
  shape = wanted;
  std::int64_t known = 1;
  for (int i = 0; i < shape.n; ++i) {
    if (shape[i] == -1 && open < 0) open = i;
    else if (shape[i] < 0)
      return bad(
          fmt::format("{}: {} to {}: sizes are positive; one may be -1", op, to_string(a.shape()), to_string(wanted)));
    else known *= shape[i];
  }
  if (open >= 0) shape[open] = known ? a.count() / known : 0;
  if (shape.count() != a.count()) {
    return bad(
        fmt::format("{}: {} to {}: {} elements do not fit", op, to_string(a.shape()), to_string(wanted), a.count()));
  }
  return shape;
}

}  // namespace

Result<Tensor> view(const Tensor& a, const Dims& wanted) {
  RILLE_CHECK(need("view", a));
  RILLE_TRY(const auto shape, full_shape("view", a, wanted));
  if (shape == a.shape()) return a;
  const auto strides = view_strides(a.shape(), a.strides(), shape);
  if (!strides) {
    return bad(fmt::format("view: {} with strides {} cannot be seen as {} without a copy", to_string(a.shape()),
                           to_string(a.strides()), to_string(shape)),
               "use reshape");
  }
  return attach_view(OpId::reshape, {}, a, make_window(a, 0, shape, *strides));
}

Result<Tensor> reshape(const Tensor& a, const Dims& wanted) {
  RILLE_CHECK(need("reshape", a));
  RILLE_TRY(const auto shape, full_shape("reshape", a, wanted));
  if (shape == a.shape()) return a;
  if (view_strides(a.shape(), a.strides(), shape)) return view(a, shape);
  RILLE_TRY(const auto flat, contiguous(a));
  return view(flat, shape);
}

Result<Tensor> permute(const Tensor& a, const Dims& order) {
  RILLE_CHECK(need("permute", a));
  Dims shape = a.shape(), strides = a.strides();
  kernels::Attrs attrs;
  unsigned seen = 0;
  for (int i = 0; i < order.n && order.n == a.rank(); ++i) {
    RILLE_TRY(const int d, normal_dim("permute", int(order[i]), a.rank()));
    shape[i] = a.shape()[d];
    strides[i] = a.strides()[d];
    attrs.i[i] = d;
    seen |= 1u << d;
  }
  if (order.n != a.rank() || seen != (1u << a.rank()) - 1) {
    Dims told = order;  // the message counts dimensions from 1, as scripts do
    for (int i = 0; i < told.n; ++i) told[i] += told[i] >= 0;
    return bad(fmt::format("permute: {} is not an order of the {} dimensions of {}", to_string(told), a.rank(),
                           to_string(a.shape())),
               "name each dimension once, counting from 1: x:permute(2, 1)");
  }
  return attach_view(OpId::permute, attrs, a, make_window(a, 0, shape, strides));
}

Result<Tensor> transpose(const Tensor& a, int dim0, int dim1) {
  RILLE_CHECK(need("transpose", a));
  RILLE_TRY(const int x, normal_dim("transpose", dim0, a.rank()));
  RILLE_TRY(const int y, normal_dim("transpose", dim1, a.rank()));
  Dims order;
  for (int i = 0; i < a.rank(); ++i) order.push(i == x ? y : i == y ? x : i);
  return permute(a, order);
}

Result<Tensor> narrow(const Tensor& a, int dim, std::int64_t start, std::int64_t length) {
  RILLE_CHECK(need("narrow", a));
  RILLE_TRY(const int d, normal_dim("narrow", dim, a.rank()));
  const std::int64_t size = a.shape()[d], from = start < 0 ? start + size : start;
  if (from < 0 || length < 0 || length > size - from) {
    return bad(fmt::format("narrow: {} elements from position {} are outside of dimension {} of {}", length, start, dim,
                           to_string(a.shape())));
  }
  if (length == size) return a;
  Dims shape = a.shape();
  shape[d] = length;
  kernels::Attrs attrs;
  attrs.i[0] = d;
  attrs.i[1] = from;
  return attach_view(OpId::narrow, attrs, a, make_window(a, from * a.strides()[d], shape, a.strides()));
}

Result<Tensor> slice(const Tensor& a, int dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  RILLE_CHECK(need("slice", a));
  RILLE_TRY(const int d, normal_dim("slice", dim, a.rank()));
  if (start < 0 || end < start || end > a.shape()[d] || step < 1) {
    return bad(
        fmt::format("slice: positions {} to {} of dimension {} of {}, in steps of {}: not within the tensor, or the "
                    "step is below 1",
                    start, end, dim, to_string(a.shape()), step));
  }
  if (step == 1 || end - start <= 1) return narrow(a, d, start, end - start);
  Dims shape = a.shape(), strides = a.strides();
  shape[d] = (end - start - 1) / step + 1;
  strides[d] *= step;
  kernels::Attrs attrs;
  attrs.i[0] = d;
  attrs.i[1] = start;
  attrs.i[2] = step;
  return attach_view(OpId::slice, attrs, a, make_window(a, start * a.strides()[d], shape, strides));
}

Result<Tensor> select(const Tensor& a, int dim, std::int64_t index) {
  RILLE_CHECK(need("select", a));
  RILLE_TRY(const int d, normal_dim("select", dim, a.rank()));
  const std::int64_t size = a.shape()[d], at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) {
    return bad(fmt::format("select: position {} is outside of dimension {} of {}", index, dim, to_string(a.shape())));
  }
  RILLE_TRY(const auto one, narrow(a, d, at, 1));
  return squeeze(one, d);
}

Result<Tensor> expand(const Tensor& a, const Dims& wanted) {
  RILLE_CHECK(need("expand", a));
  Dims shape = wanted, strides = wanted;
  const int extra = wanted.n - a.rank();
  bool fits = extra >= 0;
  for (int i = 0; fits && i < wanted.n; ++i) {
    const std::int64_t have = i < extra ? 1 : a.shape()[i - extra];
    if (shape[i] == -1 && i >= extra) shape[i] = have;
    fits = shape[i] >= 0 && (have == shape[i] || have == 1);
    strides[i] = i >= extra && have == shape[i] ? a.strides()[i - extra] : 0;
  }
  if (!fits)
    return bad(
        fmt::format("expand: {} to {}: only dimensions of size 1 can grow", to_string(a.shape()), to_string(wanted)));
  if (shape == a.shape()) return a;
  RILLE_CHECK(check_dims(shape));
  return attach_view(OpId::expand, {}, a, make_window(a, 0, shape, strides));
}

Result<Tensor> squeeze(const Tensor& a, int dim) {
  RILLE_CHECK(need("squeeze", a));
  RILLE_TRY(const int d, normal_dim("squeeze", dim, a.rank()));
  if (a.shape()[d] != 1) return a;
  Dims shape;
  for (int i = 0; i < a.rank(); ++i)
    if (i != d) shape.push(a.shape()[i]);
  return view(a, shape);
}

Result<Tensor> unsqueeze(const Tensor& a, int dim) {
  RILLE_CHECK(need("unsqueeze", a));
  RILLE_TRY(const int d, normal_dim("unsqueeze", dim, a.rank() + 1));
  if (a.rank() == kernels::max_rank)
    return bad(
        fmt::format("unsqueeze: {} has {} dimensions already, which is the limit", to_string(a.shape()), a.rank()));
  Dims shape;
  for (int i = 0; i <= a.rank(); ++i) {
    if (i == d) shape.push(1);
    if (i < a.rank()) shape.push(a.shape()[i]);
  }
  return view(a, shape);
}

Result<Tensor> flatten(const Tensor& a, int first, int last) {
  RILLE_CHECK(need("flatten", a));
  if (a.rank() == 0) return view(a, dims_of({1}));
  RILLE_TRY(const int from, normal_dim("flatten", first, a.rank()));
  RILLE_TRY(const int to, normal_dim("flatten", last, a.rank()));
  if (to < from)
    return bad(fmt::format("flatten: dimensions {} to {} of {}: the first must not come after the last", from + 1,
                           to + 1, to_string(a.shape())));
  Dims shape;
  for (int i = 0; i < a.rank(); ++i) {
    if (i <= from || i > to) shape.push(a.shape()[i]);
    else shape[from] *= a.shape()[i];
  }
  return reshape(a, shape);
}

namespace {

// Views of the given sizes, one after another along dimension d, that share one gradient rule.
std::vector<Tensor> pieces_of(const Tensor& a, const std::vector<std::int64_t>& sizes, int d) {
  std::vector<Tensor> out;
  std::int64_t at = 0;
  for (const auto size : sizes) {
    Dims shape = a.shape();
    shape[d] = size;
    out.push_back(make_window(a, at * a.strides()[d], shape, a.strides()));
    at += size;
  }
  kernels::Attrs attrs;
  attrs.i[0] = d;
  attach_grad(OpId::chunk, attrs, {a}, out);
  return out;
}

}  // namespace

Result<std::vector<Tensor>> chunk(const Tensor& a, int pieces, int dim) {
  RILLE_CHECK(need("chunk", a));
  RILLE_TRY(const int d, normal_dim("chunk", dim, a.rank()));
  if (pieces < 1) return bad(fmt::format("chunk: into {} pieces: expected at least 1", pieces));
  const std::int64_t size = a.shape()[d], each = std::max<std::int64_t>(1, (size + pieces - 1) / pieces);
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < size || sizes.empty(); at += each) sizes.push_back(std::min(each, size - at));
  return pieces_of(a, sizes, d);
}

Result<std::vector<Tensor>> split(const Tensor& a, const std::vector<std::int64_t>& sizes, int dim) {
  RILLE_CHECK(need("split", a));
  RILLE_TRY(const int d, normal_dim("split", dim, a.rank()));
  std::int64_t total = 0;
  bool fits = !sizes.empty();
  for (const auto s : sizes) {
    fits = fits && s >= 0 && s <= a.shape()[d] - total;
    if (fits) total += s;
  }
  if (!fits || total != a.shape()[d]) {
    std::string list;
    for (std::size_t i = 0; i < sizes.size() && i < 8; ++i) list += (i ? ", " : "") + std::to_string(sizes[i]);
    if (sizes.size() > 8) list += ", ..";
    return bad(fmt::format("split: {} into {{{}}} along dimension {}: the sizes do not make {}", to_string(a.shape()),
                           list, d + 1, a.shape()[d]));
  }
  return pieces_of(a, sizes, d);
}

Result<Tensor> sum_to(const Tensor& g, const Dims& shape) {
  std::vector<int> dims;
  const int extra = g.rank() - shape.n;
  for (int i = 0; i < g.rank(); ++i)
    if (i < extra || (shape[i - extra] == 1 && g.shape()[i] != 1)) dims.push_back(i);
  if (dims.empty()) return g;
  RILLE_TRY(const auto total, sum(g, dims));
  return view(total, shape);
}

void gradient::reshape(Backward& b) { b.set(0, b(tensor::reshape(b.g(), b.in_spec(0).shape))); }

void gradient::expand(Backward& b) { b.set(0, b(sum_to(b.g(), b.in_spec(0).shape))); }

void gradient::permute(Backward& b) {
  Dims inverse;
  inverse.n = b.g().rank();
  for (int i = 0; i < inverse.n; ++i) inverse[int(b.attrs().i[i])] = i;
  b.set(0, b(tensor::permute(b.g(), inverse)));
}

void gradient::narrow(Backward& b) { b.set(0, b(apply_one(OpId::pad, b.attrs(), {b.g()}, b.in_spec(0)))); }

// Pads each element of the gradient with zeros to `step` elements, then places the result at the slice's start.
void gradient::slice(Backward& b) {
  const Spec& whole = b.in_spec(0);
  const int dim = int(b.attrs().i[0]);
  const std::int64_t start = b.attrs().i[1], step = b.attrs().i[2], size = whole.shape[dim];
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < whole.shape.n; ++d) (d < dim ? outer : inner) *= d == dim ? 1 : whole.shape[d];
  const std::int64_t count = b.g().shape()[dim], room = size - start;
  const auto padded = [&](const Tensor& t, std::int64_t before, const Dims& shape) {
    kernels::Attrs attrs;
    attrs.i[0] = 1;
    attrs.i[1] = before;
    return b(apply_one(OpId::pad, attrs, {t}, {whole.dtype, shape}));
  };
  Tensor t = b(tensor::reshape(b.g(), dims_of({outer * count, inner})));
  if (b.error()) return;
  t = b(tensor::view(padded(t, 0, dims_of({outer * count, step * inner})), dims_of({outer, count * step, inner})));
  if (b.error()) return;
  if (count * step > room) t = b(tensor::narrow(t, 1, 0, room));
  if (b.error()) return;
  b.set(0, b(tensor::view(padded(t, start, dims_of({outer, size, inner})), whole.shape)));
}

void gradient::chunk(Backward& b) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < b.outputs(); ++i) {
    const Spec& spec = b.fn().out_specs[i];
    Graph& g = b.fn().graph();
    parts.push_back(b.g(i) ? b.g(i) : b(zeros(g, spec.shape, spec.dtype)));
  }
  b.set(0, b(cat_in_place(parts, int(b.attrs().i[0]))));
}

}  // namespace rille::tensor
