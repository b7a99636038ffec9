// Losses composed of other operations.
#include "runtime/compute/tensor/check.hpp"

namespace rille::tensor {

namespace {

Result<void> need_pair(const char* op, const Tensor& a, const Tensor& b) {
  RILLE_CHECK(need_float_beside(op, a, b));
  if (a.shape() == b.shape()) return success();
  return bad(fmt::format("{}: {} with targets of {}: expected the same shape", op, to_string(a.shape()),
                         to_string(b.shape())));
}

Result<Tensor> reduced(const Tensor& losses, Reduce how) {
  return how == Reduce::none ? Result<Tensor>(losses) : how == Reduce::sum ? sum(losses) : mean(losses);
}

}  // namespace

Result<Tensor> mse_loss(const Tensor& a, const Tensor& target, Reduce how) {
  RILLE_CHECK(need_pair("mse_loss", a, target));
  RILLE_TRY(const auto x, wide(a));
  RILLE_TRY(const auto away, sub(x, target));
  RILLE_TRY(const auto losses, square(away));
  return reduced(losses, how);
}

Result<Tensor> l1_loss(const Tensor& a, const Tensor& target, Reduce how) {
  RILLE_CHECK(need_pair("l1_loss", a, target));
  RILLE_TRY(const auto x, wide(a));
  RILLE_TRY(const auto away, sub(x, target));
  RILLE_TRY(const auto losses, abs(away));
  return reduced(losses, how);
}

// With d = |a - target| and m = min(d, 1), m (d - m / 2) is d d / 2 for d below 1 and d - 1 / 2 above.
Result<Tensor> smooth_l1_loss(const Tensor& a, const Tensor& target, Reduce how) {
  RILLE_CHECK(need_pair("smooth_l1_loss", a, target));
  RILLE_TRY(const auto x, wide(a));
  RILLE_TRY(const auto away, sub(x, target));
  RILLE_TRY(const auto distance, abs(away));
  RILLE_TRY(const auto near, clamp(distance, std::nullopt, 1.0));
  RILLE_TRY(const auto half, mul(near, 0.5));
  RILLE_TRY(const auto rest, sub(distance, half));
  RILLE_TRY(const auto losses, mul(near, rest));
  return reduced(losses, how);
}

// log(1 + e^x) - x y, in a form that does not overflow; x: a, y: target.
Result<Tensor> binary_cross_entropy_with_logits(const Tensor& a, const Tensor& target, Reduce how) {
  RILLE_CHECK(need_pair("binary_cross_entropy_with_logits", a, target));
  RILLE_TRY(const auto x, wide(a));
  RILLE_TRY(const auto high, softplus(x));
  RILLE_TRY(const auto part, mul(x, target));
  RILLE_TRY(const auto losses, sub(high, part));
  return reduced(losses, how);
}

}  // namespace rille::tensor
