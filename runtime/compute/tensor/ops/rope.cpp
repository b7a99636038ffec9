// Rotary position embedding and the table of angles for it.
#include <cmath>

#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

Result<Tensor> rope(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved) {
  RILLE_CHECK(need_float("rope", x));
  for (const Tensor* t : {&cos, &sin}) {
    RILLE_CHECK(need_floats("rope", x, *t));
    if (t->dtype() != stats_type(x.dtype())) RILLE_CHECK(need_same_dtype("rope", x, *t));
    if (x.rank() >= 2 && x.size(-1) % 2 == 0 && t->rank() == 2 && t->size(0) == x.size(-2) &&
        t->size(1) * 2 == x.size(-1))
      continue;
    return bad(fmt::format("rope: {} with angles of {}: expected [.., t, d] with [t, d/2]", to_string(x.shape()),
                           to_string(t->shape())));
  }
  RILLE_TRY(const auto rows, contiguous(x));
  RILLE_TRY(const auto c, contiguous(cos));
  RILLE_TRY(const auto s, contiguous(sin));
  kernels::Attrs attrs;
  attrs.i[0] = interleaved;
  return apply_one(OpId::rope, attrs, {rows, c, s}, {x.dtype(), x.shape()});
}

Result<Angles> rope_angles(Graph& g, std::int64_t positions, std::int64_t width, double base, DType dtype) {
  if (positions < 1 || width < 2 || width % 2 || !(base > 0))
    return bad(fmt::format("rope_angles: {} positions of width {} with base {}: expected an even width", positions,
                           width, base));
  RILLE_TRY(const auto place, arange(g, 0, double(positions), 1, DType::f64));
  RILLE_TRY(const auto column, unsqueeze(place, 1));
  RILLE_TRY(const auto pair, arange(g, 0, double(width / 2), 1, DType::f64));
  RILLE_TRY(const auto power, mul(pair, -2.0 / double(width)));
  RILLE_TRY(const auto speed, rpow(power, base));
  RILLE_TRY(const auto angle, mul(column, speed));
  RILLE_TRY(const auto c, cos(angle));
  RILLE_TRY(const auto s, sin(angle));
  RILLE_TRY(const auto cos_table, cast(c, dtype));
  RILLE_TRY(const auto sin_table, cast(s, dtype));
  return Angles{cos_table, sin_table};
}

// Rotates the gradient back. The angles get no gradient.
void gradient::rope(Backward& b) {
  kernels::Attrs attrs = b.attrs();
  attrs.i[1] = !attrs.i[1];
  if (b.needs(0))
    b.set(0, b(apply_one(OpId::rope, attrs, {b(tensor::contiguous(b.g())), b.in(1), b.in(2)}, b.in_spec(0))));
}

}  // namespace rille::tensor
