// Embedding: looks up rows of a table by index.
#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

Result<Tensor> embedding(const Tensor& weight, const Tensor& ids) {
  RILLE_CHECK(need_float_beside("embedding", weight, ids));
  RILLE_CHECK(need_ids("embedding", "ids", ids));
  if (weight.rank() != 2 || ids.rank() + 1 > kernels::max_rank) {
    return bad(fmt::format("embedding: a table of {} with ids of {}: expected [n, c]", to_string(weight.shape()),
                           to_string(ids.shape())));
  }
  RILLE_TRY(const auto table, contiguous(weight));
  RILLE_TRY(const auto rows, contiguous(ids));
  Dims shape = ids.shape();
  shape.push(weight.size(1));
  return apply_one(OpId::embedding, {}, {table, rows}, {weight.dtype(), shape});
}

void gradient::embedding(Backward& b) {
  if (b.needs(0))
    b.set(0, b(apply_one(OpId::embedding_grad, {}, {b(tensor::contiguous(b.g())), b.in(1)}, b.in_spec(0))));
}

}  // namespace rille::tensor
