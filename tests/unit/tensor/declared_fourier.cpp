// Declarations: Fourier transforms, against the sums that define them.
#include <complex>

#include "operation.hpp"

namespace rille::tensor::declared {

namespace {

using Complex = std::complex<double>;

// m x n complex numbers (m = 1: one dimension), the exponent's sign, no scale.
std::vector<Complex> transformed(const std::vector<Complex>& x, int m, int n, int sign) {
  std::vector<Complex> out;
  for (int p = 0; p < m; ++p)
    for (int q = 0; q < n; ++q) {
      Complex sum = 0;
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
          sum += x[std::size_t(i * n + j)] * std::polar(1.0, sign * 2 * M_PI * (double(p * i) / m + double(q * j) / n));
      out.push_back(sum);
    }
  return out;
}

// Each of the `count` transforms in the input.
template <class F>
Reference batches(int count, F f) {
  return [=](const std::vector<Numbers>& in) {
    Numbers out;
    const std::size_t each = in[0].size() / std::size_t(count);
    for (int b = 0; b < count; ++b) {
      const auto from = in[0].begin() + long(std::size_t(b) * each);
      const Numbers y = f(Numbers(from, from + long(each)));
      out.insert(out.end(), y.begin(), y.end());
    }
    return out;
  };
}

Reference between_complex(int count, int m, int n, int sign) {
  return batches(count, [=](const Numbers& x) {
    std::vector<Complex> z;
    for (int i = 0; i < m * n; ++i) z.emplace_back(x[2 * i], x[2 * i + 1]);
    Numbers out;
    for (const auto& y : transformed(z, m, n, sign)) {
      const Complex scaled = sign > 0 ? y / double(m * n) : y;
      out.push_back(scaled.real());
      out.push_back(scaled.imag());
    }
    return out;
  });
}

Reference from_real(int count, int m, int n) {
  return batches(count, [=](const Numbers& x) {
    const auto y = transformed(std::vector<Complex>(x.begin(), x.end()), m, n, -1);
    Numbers out;
    for (int i = 0; i < m; ++i)
      for (int k = 0; k <= n / 2; ++k) {
        out.push_back(y[std::size_t(i * n + k)].real());
        out.push_back(y[std::size_t(i * n + k)].imag());
      }
    return out;
  });
}

// The rows first, as complex numbers; then each row from its half spectrum, whose ends are taken as real.
Reference from_spectrum(int count, int m, int n) {
  return batches(count, [=](const Numbers& x) {
    const int bins = n / 2 + 1;
    std::vector<Complex> z;
    for (int i = 0; i < m * bins; ++i) z.emplace_back(x[2 * i], x[2 * i + 1]);
    Numbers out;
    for (int p = 0; p < m; ++p) {
      std::vector<Complex> row(static_cast<std::size_t>(bins), 0);
      for (int k = 0; k < bins; ++k)
        for (int i = 0; i < m; ++i) row[k] += z[i * bins + k] * std::polar(1.0, 2 * M_PI * double(p * i) / m);
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int k = 0; k < bins; ++k) {
          const bool end = k == 0 || 2 * k == n;
          sum += (end ? 1 : 2) * (row[k] * std::polar(1.0, 2 * M_PI * double(k * j) / n)).real();
        }
        out.push_back(sum / (m * n));
      }
    }
    return out;
  });
}

}  // namespace

std::vector<Operation> fourier() {
  std::vector<Operation> r;
  const auto add = [&](const char* name, Dims shape, std::function<Result<Tensor>(const Tensor&)> f,
                       Reference reference) {
    r.push_back({name, {{shape}}, [f](auto& t) { return f(t[0]); }, reference, true, floats, 4});
  };
  add(
      "fft", dims({2, 6, 2}), [](auto& t) { return fft(t); }, between_complex(2, 1, 6, -1));
  add(
      "ifft", dims({2, 5, 2}), [](auto& t) { return ifft(t); }, between_complex(2, 1, 5, 1));
  add(
      "fft2", dims({2, 3, 4, 2}), [](auto& t) { return fft2(t); }, between_complex(2, 3, 4, -1));
  add(
      "ifft2", dims({3, 4, 2}), [](auto& t) { return ifft2(t); }, between_complex(1, 3, 4, 1));
  add(
      "rfft", dims({3, 6}), [](auto& t) { return rfft(t); }, from_real(3, 1, 6));
  add(
      "rfft of an odd size", dims({2, 7}), [](auto& t) { return rfft(t); }, from_real(2, 1, 7));
  add(
      "rfft2", dims({2, 3, 4}), [](auto& t) { return rfft2(t); }, from_real(2, 3, 4));
  add(
      "irfft", dims({2, 4, 2}), [](auto& t) { return irfft(t); }, from_spectrum(2, 1, 6));
  add(
      "irfft to an odd size", dims({2, 4, 2}), [](auto& t) { return irfft(t, 7); }, from_spectrum(2, 1, 7));
  add(
      "irfft2", dims({3, 3, 2}), [](auto& t) { return irfft2(t); }, from_spectrum(1, 3, 4));
  return r;
}

}  // namespace rille::tensor::declared
