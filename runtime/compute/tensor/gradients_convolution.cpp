// Gradient rules of convolution, pooling, normalisation, general attention and rotary embedding.
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor::gradient {

void convolution(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  if (b.needs(0)) b.set(0, b(apply_one(OpId::convolution_grad_input, b.attrs(), {g, b.in(1)}, b.in_spec(0))));
  const bool bias = b.inputs() == 3;
  if (!b.needs(1) && !(bias && b.needs(2))) return;
  std::vector<Spec> specs{b.in_spec(1)};
  if (bias) specs.push_back(b.in_spec(2));
  const auto out = b(apply(OpId::convolution_grad_weight, b.attrs(), {b.in(0), g}, specs), specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) b.set(1 + i, out[i]);
}

// Of a transposed convolution: it is linear in both, and each of the three passes is the others' gradient.
void convolution_grad_input(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  if (b.needs(0)) b.set(0, b(apply_one(OpId::convolution, b.attrs(), {g, b.in(1)}, b.in_spec(0))));
  if (b.needs(1)) b.set(1, b(apply_one(OpId::convolution_grad_weight, b.attrs(), {g, b.in(0)}, b.in_spec(1))));
}

void max_pool(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  b.set(0, b(apply_one(OpId::max_pool_grad, b.attrs(), {g, b.out(1)}, b.in_spec(0))));
}

void avg_pool(Backward& b) {
  b.set(0, b(apply_one(OpId::avg_pool_grad, b.attrs(), {b(tensor::contiguous(b.g()))}, b.in_spec(0))));
}

void batch_norm(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  const Spec &x = b.in_spec(0), &stats = b.fn().out_specs[1];
  const Spec w = b.in(1) ? b.in_spec(1) : stats, shift = b.in(2) ? b.in_spec(2) : stats;
  const auto out =
      b(apply(OpId::batch_norm_grad, b.attrs(), {g, b.in(0), b.in(1), b.out(1), b.out(2)}, {x, w, shift}), 3);
  for (std::size_t i = 0; i < 3; ++i)
    if (b.needs(i)) b.set(i, out[i]);
}

void rms_norm(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  const Spec& x = b.in_spec(0);
  const Spec w = b.in(1) ? b.in_spec(1) : Spec{stats_type(x.dtype), dims_of({x.shape[x.shape.n - 1]})};
  const auto out = b(apply(OpId::rms_norm_grad, b.attrs(), {g, b.in(0), b.in(1), b.out(1)}, {x, w}), 2);
  for (std::size_t i = 0; i < 2; ++i)
    if (b.needs(i)) b.set(i, out[i]);
}

void attention_masked(Backward& b) {
  const Tensor g = rows_of(b);
  const auto out = b(apply(OpId::attention_masked_grad, b.attrs(),
                           {g, b.in(0), b.in(1), b.in(2), b.in(3), b.in(4), b.out(0), b.out(1)},
                           {b.in_spec(0), b.in_spec(1), b.in_spec(2)}),
                     3);
  for (std::size_t i = 0; i < 3; ++i) b.set(i, out[i]);
}

// The angles have no gradient.
void rope(Backward& b) {
  kernels::Attrs attrs = b.attrs();
  attrs.i[1] = !attrs.i[1];
  if (b.needs(0))
    b.set(0, b(apply_one(OpId::rope, attrs, {b(tensor::contiguous(b.g())), b.in(1), b.in(2)}, b.in_spec(0))));
}

}  // namespace rille::tensor::gradient
