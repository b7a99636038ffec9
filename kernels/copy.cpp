// Copies and casts. Float to integer truncates toward zero; to bool is "not zero"; f32 to bf16 rounds to nearest even.
#include "kernels/copy.hpp"

#include <string.h>

#include "kernels/nest.hpp"

namespace rille::kernels::RILLE_ISA {

struct Bf16 { uint16_t bits; };
struct Bool { uint8_t value; };

template <class T> static inline float widen(T x) { return float(x); }
static inline float from_bf16(Bf16 x) {
  const uint32_t u = uint32_t(x.bits) << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static inline Bf16 to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if (f != f) return {uint16_t((u >> 16) | 0x40)};
  return {uint16_t((u + 0x7fff + ((u >> 16) & 1)) >> 16)};
}

template <class To, class From> struct Convert { static inline To go(From x) { return To(x); } };
template <class From> struct Convert<Bool, From> { static inline Bool go(From x) { return {uint8_t(x != From(0))}; } };
template <class From> struct Convert<Bf16, From> { static inline Bf16 go(From x) { return to_bf16(float(x)); } };
template <class To> struct Convert<To, Bf16> { static inline To go(Bf16 x) { return To(from_bf16(x)); } };
template <class To> struct Convert<To, Bool> { static inline To go(Bool x) { return To(x.value); } };
template <> struct Convert<Bool, Bf16> { static inline Bool go(Bf16 x) { return {uint8_t(from_bf16(x) != 0)}; } };
template <> struct Convert<Bf16, Bool> { static inline Bf16 go(Bool x) { return to_bf16(x.value); } };
template <> struct Convert<Bf16, Bf16> { static inline Bf16 go(Bf16 x) { return x; } };
template <> struct Convert<Bool, Bool> { static inline Bool go(Bool x) { return x; } };

template <class To, class From>
static void copy_as(const View& in, const View& out) {
  const View* const views[2] = {&in, &out};
  const auto nest = make_nest<2>(views);
  const From* a = in.ptr<From>();
  To* o = out.ptr<To>();
  for_rows(nest, [&](const int64_t* at, int64_t n) {
    const From* x = a + at[0];
    To* y = o + at[1];
    const int64_t sx = nest.inner_stride[0], sy = nest.inner_stride[1];
    if (sx == 1 && sy == 1) {
      for (int64_t i = 0; i < n; ++i) y[i] = Convert<To, From>::go(x[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) y[i * sy] = Convert<To, From>::go(x[i * sx]);
    }
  });
}

template <class From>
static void copy_from(const View& in, const View& out) {
  switch (out.dtype) {
    case DType::boolean: return copy_as<Bool, From>(in, out);
    case DType::u8: return copy_as<uint8_t, From>(in, out);
    case DType::i32: return copy_as<int32_t, From>(in, out);
    case DType::i64: return copy_as<int64_t, From>(in, out);
    case DType::bf16: return copy_as<Bf16, From>(in, out);
    case DType::f32: return copy_as<float, From>(in, out);
    case DType::f64: return copy_as<double, From>(in, out);
  }
}

static void copy_view(const View& in, const View& out) {
  switch (in.dtype) {
    case DType::boolean: return copy_from<Bool>(in, out);
    case DType::u8: return copy_from<uint8_t>(in, out);
    case DType::i32: return copy_from<int32_t>(in, out);
    case DType::i64: return copy_from<int64_t>(in, out);
    case DType::bf16: return copy_from<Bf16>(in, out);
    case DType::f32: return copy_from<float>(in, out);
    case DType::f64: return copy_from<double>(in, out);
  }
}

void copy(const Call& c) { copy_view(c.in[0], c.out[0]); }

static void fill_view(const View& out, double f, int64_t i) {
  const View* const views[1] = {&out};
  const auto nest = make_nest<1>(views);
  const auto write = [&](auto value) {
    using T = decltype(value);
    T* o = out.ptr<T>();
    for_rows(nest, [&](const int64_t* at, int64_t n) {
      const int64_t s = nest.inner_stride[0];
      if (s == 1) for (int64_t k = 0; k < n; ++k) o[at[0] + k] = value;
      else for (int64_t k = 0; k < n; ++k) o[at[0] + k * s] = value;
    });
  };
  switch (out.dtype) {
    case DType::boolean: return write(uint8_t(i != 0));
    case DType::u8: return write(uint8_t(i));
    case DType::i32: return write(int32_t(i));
    case DType::i64: return write(i);
    case DType::bf16: return write(to_bf16(float(f)).bits);
    case DType::f32: return write(float(f));
    case DType::f64: return write(f);
  }
}

void fill(const Call& c) { fill_view(c.out[0], c.attrs->f[0], c.attrs->i[0]); }

void arange(const Call& c) {
  const double start = c.attrs->f[0], step = c.attrs->f[1];
  RILLE_NUMBERS(c.out[0].dtype, {
    T* o = c.out[0].ptr<T>();
    for (int64_t i = 0, n = c.out[0].count(); i < n; ++i) o[i] = T(start + double(i) * step);
  });
}

// The window of `length` places from `start` along `dim`.
static View window(const View& v, int dim, int64_t start, int64_t length) {
  View w = v;
  w.shape[dim] = length;
  w.data = static_cast<char*>(v.data) + size_t(start * v.strides[dim]) * size_bytes(v.dtype);
  return w;
}

void cat(const Call& c) {
  const int dim = int(c.attrs->i[0]);
  int64_t start = 0;
  for (int k = 0; k < c.n_in; ++k) {
    copy_view(c.in[k], window(c.out[0], dim, start, c.in[k].shape[dim]));
    start += c.in[k].shape[dim];
  }
}

void pad(const Call& c) {
  const int dim = int(c.attrs->i[0]);
  const int64_t start = c.attrs->i[1], length = c.in[0].shape[dim], size = c.out[0].shape[dim];
  fill_view(window(c.out[0], dim, 0, start), 0, 0);
  copy_view(c.in[0], window(c.out[0], dim, start, length));
  fill_view(window(c.out[0], dim, start + length, size - start - length), 0, 0);
}

}  // namespace rille::kernels::RILLE_ISA
