// Fourier transforms. A complex tensor has a last dimension of 2: real part, imaginary part.
#include <cmath>

#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

namespace {

enum Kind { complex, to_spectrum, to_real };

// The factor by which a transform of `count` elements multiplies its result.
double scale_of(Norm norm, bool inverse, std::int64_t count) {
  if (norm == Norm::ortho) return 1 / std::sqrt(double(count));
  return (norm == Norm::backward) == inverse ? 1 / double(count) : 1.0;
}

kernels::Attrs describe(Kind kind, int sign, int dimensions, std::int64_t rows, std::int64_t n, bool inverse,
                        Norm norm) {
  kernels::Attrs attrs;
  attrs.i[0] = kind;
  attrs.i[1] = sign;
  attrs.i[2] = dimensions;
  attrs.i[3] = rows;
  attrs.i[4] = n;
  attrs.f[0] = scale_of(norm, inverse, rows * n);
  return attrs;
}

Result<void> need_sizes(const char* op, const Tensor& a, std::int64_t rows, std::int64_t n) {
  if (rows >= 1 && n >= 1 && rows * n <= std::int64_t(1) << 30) return success();
  return bad(fmt::format("{}: {}: a transform of {} x {} numbers: expected 1 to 2^30 numbers", op, to_string(a.shape()),
                         rows, n));
}

// Requires a last dimension of 2 after at least `dimensions` other dimensions.
Result<void> need_complex(const char* op, const Tensor& a, int dimensions) {
  RILLE_CHECK(need_float(op, a));
  if (a.rank() > dimensions && a.size(-1) == 2) return success();
  return bad(fmt::format("{}: {}: expected complex numbers, a last dimension of 2 after {}", op, to_string(a.shape()),
                         dimensions == 1 ? "[.., n]" : "[.., m, n]"),
             "x:rfft() takes real numbers");
}

Result<Tensor> between_complex(const char* op, const Tensor& a, int dimensions, bool inverse, Norm norm) {
  RILLE_CHECK(need_complex(op, a, dimensions));
  const auto n = a.size(-2), rows = dimensions == 2 ? a.size(-3) : 1;
  RILLE_CHECK(need_sizes(op, a, rows, n));
  RILLE_TRY(const auto x, contiguous(a));
  const auto attrs = describe(complex, inverse ? 1 : -1, dimensions, rows, n, inverse, norm);
  return apply_one(OpId::fourier, attrs, {x}, {a.dtype(), a.shape()});
}

Result<Tensor> from_real(const char* op, const Tensor& a, int dimensions, Norm norm) {
  RILLE_TRY(const auto floats, as_float(op, a));
  if (a.rank() < dimensions || a.rank() + 1 > kernels::max_rank)
    return bad(
        fmt::format("{}: {}: expected {}", op, to_string(a.shape()), dimensions == 1 ? "[.., n]" : "[.., m, n]"));
  const auto n = a.size(-1), rows = dimensions == 2 ? a.size(-2) : 1;
  RILLE_CHECK(need_sizes(op, a, rows, n));
  RILLE_TRY(const auto x, contiguous(floats));
  Dims shape = a.shape();
  shape[a.rank() - 1] = n / 2 + 1;
  shape.push(2);
  const auto attrs = describe(to_spectrum, 0, dimensions, rows, n, false, norm);
  return apply_one(OpId::fourier, attrs, {x}, {x.dtype(), shape});
}

Result<Tensor> from_spectrum(const char* op, const Tensor& a, int dimensions, std::int64_t size, Norm norm) {
  RILLE_CHECK(need_complex(op, a, dimensions));
  const auto n = size > 0 ? size : 2 * (a.size(-2) - 1), rows = dimensions == 2 ? a.size(-3) : 1;
  if (n < 1 || n / 2 + 1 != a.size(-2)) {
    return bad(fmt::format("{}: {} to {} numbers: they come from {} bins, not {}", op, to_string(a.shape()), n,
                           n / 2 + 1, a.size(-2)));
  }
  RILLE_CHECK(need_sizes(op, a, rows, n));
  RILLE_TRY(const auto x, contiguous(a));
  Dims shape = a.shape();
  shape.n -= 1;
  shape[shape.n - 1] = n;
  return apply_one(OpId::fourier, describe(to_real, 0, dimensions, rows, n, true, norm), {x}, {a.dtype(), shape});
}

}  // namespace

Result<Tensor> fft(const Tensor& a, Norm norm) { return between_complex("fft", a, 1, false, norm); }
Result<Tensor> ifft(const Tensor& a, Norm norm) { return between_complex("ifft", a, 1, true, norm); }
Result<Tensor> fft2(const Tensor& a, Norm norm) { return between_complex("fft2", a, 2, false, norm); }
Result<Tensor> ifft2(const Tensor& a, Norm norm) { return between_complex("ifft2", a, 2, true, norm); }
Result<Tensor> rfft(const Tensor& a, std::int64_t n, Norm norm) {
  RILLE_CHECK(need("rfft", a));
  if (n <= 0 || a.rank() == 0 || n == a.size(-1)) return from_real("rfft", a, 1, norm);
  RILLE_CHECK(need_sizes("rfft", a, 1, n));
  RILLE_TRY(const auto sized, n < a.size(-1) ? narrow(a, -1, 0, n) : pad(a, {0, n - a.size(-1)}));
  return from_real("rfft", sized, 1, norm);
}
Result<Tensor> rfft2(const Tensor& a, Norm norm) { return from_real("rfft2", a, 2, norm); }
Result<Tensor> irfft(const Tensor& a, std::int64_t n, Norm norm) { return from_spectrum("irfft", a, 1, n, norm); }
Result<Tensor> irfft2(const Tensor& a, std::int64_t n, Norm norm) { return from_spectrum("irfft2", a, 2, n, norm); }

// A transform is linear, so its gradient is the transform with the opposite sign in the exponent. An inner bin of a
// half spectrum stands for two bins: the transform to reals counts it twice, the transform from reals once.
void gradient::fourier(Backward& b) {
  kernels::Attrs attrs = b.attrs();
  if (attrs.i[0] == complex) {
    attrs.i[1] = -attrs.i[1];
  } else {
    attrs.f[1] = attrs.i[0] == to_spectrum ? 0.5 : 2.0;
    attrs.i[0] = attrs.i[0] == to_spectrum ? to_real : to_spectrum;
  }
  b.set(0, b(apply_one(OpId::fourier, attrs, {b(tensor::contiguous(b.g()))}, b.in_spec(0))));
}

}  // namespace rille::tensor
