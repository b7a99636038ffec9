// Gradient rules of products and of what networks need.
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

Tensor rows_of(Backward& b) {
  const Tensor& g = b.g();
  return g.strides()[3] == 1 && g.strides()[2] >= g.shape()[3] ? g : b(tensor::clone(g));
}

namespace gradient {

void matmul(Backward& b) {
  const SameProducts same(b);
  if (b.needs(0)) b.set(0, b(tensor::matmul(b.g(), b(tensor::transpose(b.in(1), -2, -1)))));
  if (b.needs(1)) b.set(1, b(tensor::matmul(b(tensor::transpose(b.in(0), -2, -1)), b.g())));
}

// in: x [rows, in], the weight seen as [in, out], bias [out].
void linear(Backward& b) {
  const SameProducts same(b);
  if (b.needs(0)) b.set(0, b(tensor::matmul(b.g(), b(tensor::transpose(b.in(1), 0, 1)))));
  // Made as [out, in], the way the weight lies in memory, and seen turned: its gradient is contiguous then.
  if (b.needs(1)) {
    const Tensor turned = b(tensor::matmul(b(tensor::transpose(b.g(), 0, 1)), b.in(0)));
    b.set(1, b(tensor::transpose(turned, 0, 1)));
  }
  if (b.inputs() == 3 && b.needs(2)) b.set(2, b(tensor::sum(b.g(), {0})));
}

// The three gradients share one memory of [b, t, 3, h, d] where the shapes allow it: seen through the chunks
// and views of a fused projection they lie one after another, and chunk's rule joins them without a copy.
void attention(Backward& b) {
  const Tensor g = rows_of(b);
  if (b.error()) return;
  Graph& graph = g.graph();
  const Dims &q = b.in_spec(0).shape, &k = b.in_spec(1).shape, &v = b.in_spec(2).shape;
  std::vector<Tensor> out;
  if (q == k && k == v) {
    const auto n = q[0], h = q[1], t = q[2], d = q[3];
    const Tensor memory = make_tensor(graph, g.dtype(), dims_of({n, t, 3, h, d}));
    for (int i = 0; i < 3; ++i)
      out.push_back(make_window(memory, i * h * d, q, dims_of({t * 3 * h * d, d, 3 * h * d, 1})));
  } else {
    for (const Dims* s : {&q, &k, &v}) out.push_back(make_tensor(graph, g.dtype(), *s));
  }
  if (auto r = record(graph, OpId::attention_grad, b.attrs(), {g, b.in(0), b.in(1), b.in(2), b.out(0), b.out(1)}, out);
      !r) {
    b.error() = std::move(r).error();
    return;
  }
  for (int i = 0; i < 3; ++i) b.set(i, out[i]);
}

void softmax(Backward& b) {
  b.set(0, b(apply_one(OpId::softmax_grad, b.attrs(), {b.out(), b(tensor::contiguous(b.g()))}, b.in_spec(0))));
}
void log_softmax(Backward& b) {
  b.set(0, b(apply_one(OpId::log_softmax_grad, b.attrs(), {b.out(), b(tensor::contiguous(b.g()))}, b.in_spec(0))));
}

void layer_norm(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  const Spec& x = b.in_spec(0);
  const auto row = [&](std::size_t i) {
    return Spec{b.in(i) ? b.in_spec(i).dtype : x.dtype, dims_of({x.shape[x.shape.n - 1]})};
  };
  const auto out =
      b(apply(OpId::layer_norm_grad, {}, {g, b.in(0), b.in(1), b.out(1), b.out(2)}, {x, row(1), row(2)}), 3);
  for (std::size_t i = 0; i < 3; ++i)
    if (b.needs(i)) b.set(i, out[i]);
}

void embedding(Backward& b) {
  if (b.needs(0))
    b.set(0, b(apply_one(OpId::embedding_grad, {}, {b(tensor::contiguous(b.g())), b.in(1)}, b.in_spec(0))));
}

void cross_entropy(Backward& b) {
  b.set(0, b(apply_one(OpId::cross_entropy_grad, b.attrs(), {b.g(), b.in(0), b.in(1), b.out(1)}, b.in_spec(0))));
}

}  // namespace gradient

}  // namespace rille::tensor
