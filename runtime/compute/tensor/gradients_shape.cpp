// Gradient rules of views, copies and reductions.
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

Result<Tensor> cat_in_place(const std::vector<Tensor>& parts, int dim);  // ops_shape.cpp

Result<Tensor> sum_to(const Tensor& g, const Dims& shape) {
  std::vector<int> dims;
  const int extra = g.rank() - shape.n;
  for (int i = 0; i < g.rank(); ++i)
    if (i < extra || (shape[i - extra] == 1 && g.shape()[i] != 1)) dims.push_back(i);
  if (dims.empty()) return g;
  RILLE_TRY(const auto total, sum(g, dims));
  return view(total, shape);
}

namespace gradient {

namespace {

// The gradient of a reduction, seen with the shape before it. attrs.i[0] dimensions were moved last and reduced.
Tensor spread(Backward& b, const Tensor& t) {
  const Spec& spec = b.in_spec(0);
  Dims kept = spec.shape;
  for (int i = 0; i < int(b.attrs().i[0]); ++i) kept[spec.shape.n - 1 - i] = 1;
  return b(tensor::expand(b(tensor::view(t, kept)), spec.shape));
}

}  // namespace

void contiguous(Backward& b) { b.set(0, b.g()); }
void reshape(Backward& b) { b.set(0, b(tensor::reshape(b.g(), b.in_spec(0).shape))); }
void expand(Backward& b) { b.set(0, b(sum_to(b.g(), b.in_spec(0).shape))); }

void permute(Backward& b) {
  Dims inverse;
  inverse.n = b.g().rank();
  for (int i = 0; i < inverse.n; ++i) inverse[int(b.attrs().i[i])] = i;
  b.set(0, b(tensor::permute(b.g(), inverse)));
}

void narrow(Backward& b) { b.set(0, b(apply_one(OpId::pad, b.attrs(), {b.g()}, b.in_spec(0)))); }

// Each element becomes a run of `step` with zeros behind it; then the runs are put in their place.
void slice(Backward& b) {
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

void chunk(Backward& b) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < b.outputs(); ++i) {
    const Spec& spec = b.fn().out_specs[i];
    Graph& g = b.fn().graph();
    parts.push_back(b.g(i) ? b.g(i) : b(zeros(g, spec.shape, spec.dtype)));
  }
  b.set(0, b(cat_in_place(parts, int(b.attrs().i[0]))));
}

// Gradients of choosing by number add up where a number stands twice.
void gather(Backward& b) {
  const Tensor zero = b(tensor::expand(b(zeros(b.g().graph(), {}, b.in_spec(0).dtype)), b.in_spec(0).shape));
  if (b.needs(0)) b.set(0, b(tensor::scatter(zero, int(b.attrs().i[0]), b.in(1), b.g(), true)));
}

void scatter(Backward& b) {
  const int dim = int(b.attrs().i[0]);
  const Tensor zero = b(tensor::expand(b(zeros(b.g().graph(), {}, b.in_spec(0).dtype)), b.in_spec(1).shape));
  if (b.needs(0)) b.set(0, b.attrs().i[1] ? b.g() : b(tensor::scatter(b.g(), dim, b.in(1), zero)));
  if (b.needs(2)) b.set(2, b(tensor::gather(b.g(), dim, b.in(1))));
}

void index_select(Backward& b) {
  if (!b.needs(0)) return;
  b.set(0, b(apply_one(OpId::index_add, b.attrs(), {b(tensor::contiguous(b.g())), b.in(1)}, b.in_spec(0))));
}

void sort(Backward& b) {
  const Tensor zero = b(tensor::expand(b(zeros(b.g().graph(), {}, b.in_spec(0).dtype)), b.in_spec(0).shape));
  b.set(0, b(tensor::scatter(zero, -1, b.out(1), b.g())));
}

void tril(Backward& b) { b.set(0, b(apply_one(OpId::tril, b.attrs(), {b(tensor::contiguous(b.g()))}, b.in_spec(0)))); }

void flip(Backward& b) {
  std::vector<int> dims;
  for (int d = 0; d < b.g().rank(); ++d)
    if (b.attrs().i[0] >> d & 1) dims.push_back(d);
  b.set(0, b(tensor::flip(b.g(), dims)));
}

void cat(Backward& b) {
  const int dim = int(b.attrs().i[0]);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    const auto length = b.in_spec(i).shape[dim];
    if (b.needs(i)) b.set(i, b(tensor::narrow(b.g(), dim, at, length)));
    at += length;
  }
}

void sum(Backward& b) {
  const double factor = b.attrs().f[0];
  b.set(0, spread(b, factor != 0 ? b(tensor::mul(b.g(), factor)) : b.g()));
}

// Each element's is the product of the others: with zeros among them it is no quotient.
void prod(Backward& b) {
  const Tensor x = b(tensor::contiguous(b.in(0))), g = b(tensor::contiguous(b.g()));
  b.set(0, b(apply_one(OpId::prod_grad, b.attrs(), {x, g}, b.in_spec(0))));
}

void cumsum(Backward& b) {
  kernels::Attrs attrs = b.attrs();
  attrs.i[0] = !attrs.i[0];
  b.set(0, b(apply_one(OpId::cumsum, attrs, {b(tensor::contiguous(b.g()))}, b.in_spec(0))));
}

// Shared equally by the elements that reach the extreme.
void extreme(Backward& b) {
  const Tensor mask = b(tensor::cast(b(tensor::eq(b.in(0), spread(b, b.out()))), b.g().dtype()));
  std::vector<int> dims;
  for (int i = 0; i < int(b.attrs().i[0]); ++i) dims.push_back(b.in_spec(0).shape.n - 1 - i);
  if (dims.empty()) return b.set(0, b.g());
  const Tensor each = b(tensor::div(b.g(), b(tensor::sum(mask, dims))));
  b.set(0, b(tensor::mul(mask, spread(b, each))));
}

}  // namespace gradient
}  // namespace rille::tensor
