// Copies, casts, fills and moves memory.
//
// Casts: float to integer truncates toward zero; to bool tests for "not zero"; to f16 and bf16 rounds to
// nearest even.
#include "kernels/walk.hpp"

namespace rille::kernels::RILLE_ISA {

struct Bool {
  uint8_t value;
};

template <class To, class From>
struct Convert {
  static inline To go(From x) { return To(x); }
};
template <class From>
struct Convert<Bool, From> {
  static inline Bool go(From x) { return {uint8_t(x != From(0))}; }
};

template <class To, class From>
static void convert_row(char* const* p, const int64_t* s, int64_t n, const double*) {
  const From* x = reinterpret_cast<const From*>(p[0]);
  To* y = reinterpret_cast<To*>(p[1]);
  if (s[0] == 1 && s[1] == 1)
    for (int64_t i = 0; i < n; ++i) y[i] = Convert<To, From>::go(x[i]);
  else
    for (int64_t i = 0; i < n; ++i) y[i * s[1]] = Convert<To, From>::go(x[i * s[0]]);
}

// bool is read as u8. f16 and bf16 are read and written as f32 (walk.hpp converts them).
template <class From>
static Row row_to(DType to) {
  switch (to) {
    case DType::boolean: return &convert_row<Bool, From>;
    case DType::u8: return &convert_row<uint8_t, From>;
    case DType::i8: return &convert_row<int8_t, From>;
    case DType::i32: return &convert_row<int32_t, From>;
    case DType::i64: return &convert_row<int64_t, From>;
    case DType::f64: return &convert_row<double, From>;
    default: return &convert_row<float, From>;
  }
}

// memcpy, except if the two addresses differ modulo the cache line, where glibc's `rep movsb` is slow on Zen.
static void copy_run(void* to, const void* from, size_t bytes) {
  char* y = static_cast<char*>(to);
  const char* x = static_cast<const char*>(from);
  size_t i = 0;
  if ((reinterpret_cast<uintptr_t>(y) ^ reinterpret_cast<uintptr_t>(x)) % 64 != 0)
    for (; i + 64 <= bytes; i += 64) __builtin_memcpy(y + i, x + i, 64);
  memcpy(y + i, x + i, bytes - i);
}

template <class T>
static void copy_row(char* const* p, const int64_t* s, int64_t n, const double*) {
  const T* x = reinterpret_cast<const T*>(p[0]);
  T* y = reinterpret_cast<T*>(p[1]);
  if (s[0] == 1 && s[1] == 1) copy_run(y, x, size_t(n) * sizeof(T));
  else if (s[0] == 0 && s[1] == 1)
    for (int64_t i = 0; i < n; ++i) y[i] = *x;
  else
    for (int64_t i = 0; i < n; ++i) y[i * s[1]] = x[i * s[0]];
}

static Row cast_row(DType from, DType to) {
  Row row = nullptr;
  RILLE_NUMBERS(row_type(from), row = row_to<T>(to));
  return row;
}

// Casts between f32 and a half type, reading and writing the half type directly.
template <DType half>
static void narrowed_row(char* const* p, const int64_t* s, int64_t n, const double*) {
  const float* x = reinterpret_cast<const float*>(p[0]);
  uint16_t* y = reinterpret_cast<uint16_t*>(p[1]);
  if (s[0] == 1) return narrow_row(half, x, y, s[1], n);
  for (int64_t i = 0; i < n; ++i) y[i * s[1]] = half == DType::bf16 ? to_bf16(x[i * s[0]]) : to_f16(x[i * s[0]]);
}
template <DType half>
static void widened_row(char* const* p, const int64_t* s, int64_t n, const double*) {
  const uint16_t* x = reinterpret_cast<const uint16_t*>(p[0]);
  float* y = reinterpret_cast<float*>(p[1]);
  if (s[1] == 1) return widen_row(half, x, s[0], y, n);
  for (int64_t i = 0; i < n; ++i) y[i * s[1]] = half == DType::bf16 ? from_bf16(x[i * s[0]]) : from_f16(x[i * s[0]]);
}
static Row half_cast_row(DType from, DType to) {
  if (from == DType::f32 && is_half(to))
    return to == DType::bf16 ? &narrowed_row<DType::bf16> : &narrowed_row<DType::f16>;
  if (is_half(from) && to == DType::f32)
    return from == DType::bf16 ? &widened_row<DType::bf16> : &widened_row<DType::f16>;
  return nullptr;
}

// Runs a row function that takes half types without widening.
static void walk_raw(const Call& c, const View& in, const View& out, Row row) {
  const View* const views[2] = {&in, &out};
  const auto nest = make_nest<2>(views);
  for_rows(c, nest, [&](const int64_t* at, int64_t n) {
    char* p[2] = {in.ptr<char>() + at[0] * int64_t(size_bytes(in.dtype)),
                  out.ptr<char>() + at[1] * int64_t(size_bytes(out.dtype))};
    row(p, nest.inner_stride, n, nullptr);
  });
}

// For a transposing copy, whose input and output are contiguous along different dimensions: copies squares through a
// small buffer, so that each cache line is read and written once.
template <class T>
static bool copy_turned(const Call& c, const View& in, const View& out) {
  static constexpr int64_t side = 32;
  int a = -1, b = -1;  // the contiguous dimensions: a of the output, b of the input
  for (int d = 0; d < in.shape.n; ++d) {
    if (in.shape[d] < side / 2) continue;
    if (out.strides[d] == 1) a = d;
    if (in.strides[d] == 1) b = d;
  }
  if (a < 0 || b < 0 || a == b || in.strides[a] == 1 || out.strides[b] == 1) return false;
  const int64_t n_a = in.shape[a], n_b = in.shape[b], squares_a = (n_a + side - 1) / side;
  const int64_t squares = squares_a * ((n_b + side - 1) / side);
  const int64_t rest = in.count() / (n_a * n_b);
  for_stoppable(c, rest * squares, side * side, [&](int64_t begin, int64_t end) {
    T turned[side][side];
    for (int64_t u = begin; u < end; ++u) {
      int64_t from = 0, to = 0, other = u / squares;
      for (int d = in.shape.n - 1; d >= 0; --d) {
        if (d == a || d == b) continue;
        from += other % in.shape[d] * in.strides[d];
        to += other % in.shape[d] * out.strides[d];
        other /= in.shape[d];
      }
      const int64_t i = u % squares % squares_a * side, j = u % squares / squares_a * side;
      const int64_t n_i = n_a - i < side ? n_a - i : side, n_j = n_b - j < side ? n_b - j : side;
      const T* x = in.ptr<T>() + from + i * in.strides[a] + j;
      T* y = out.ptr<T>() + to + i + j * out.strides[b];
      for (int64_t k = 0; k < n_i; ++k)
        for (int64_t m = 0; m < n_j; ++m) turned[m][k] = x[k * in.strides[a] + m];
      for (int64_t m = 0; m < n_j; ++m) memcpy(y + m * out.strides[b], turned[m], size_t(n_i) * sizeof(T));
    }
  });
  return true;
}

static void copy_view(const Call& c, const View& in, const View& out) {
  if (in.dtype != out.dtype) {
    if (const Row row = half_cast_row(in.dtype, out.dtype)) return walk_raw(c, in, out, row);
    const View* const views[2] = {&in, &out};
    return walk<2>(c, views, cast_row(in.dtype, out.dtype), nullptr);
  }
  View x = in, y = out;  // only bytes move, so use an integer type of that size
  const size_t size = size_bytes(in.dtype);
  x.dtype = y.dtype = size == 8 ? DType::i64 : size == 4 ? DType::i32 : size == 1 ? DType::u8 : in.dtype;
  if (size == 8   ? copy_turned<uint64_t>(c, x, y)
      : size == 4 ? copy_turned<uint32_t>(c, x, y)
      : size == 2 ? copy_turned<uint16_t>(c, x, y)
                  : copy_turned<uint8_t>(c, x, y))
    return;
  const View* const views[2] = {&x, &y};
  if (size != 2)
    return walk<2>(c, views,
                   size == 8   ? &copy_row<uint64_t>
                   : size == 4 ? &copy_row<uint32_t>
                               : &copy_row<uint8_t>,
                   nullptr);
  walk_raw(c, x, y, &copy_row<uint16_t>);
}

// out[0] = in[0], with any strides (0 broadcasts) and any pair of types
void copy(const Call& c) {
  const Row half = half_cast_row(c.in[0].dtype, c.out[0].dtype);
  if (!asked(c, half ? half : cast_row(c.in[0].dtype, c.out[0].dtype), half != nullptr))
    copy_view(c, c.in[0], c.out[0]);
}

template <class T>
static void fill_sized(const Call& c, const View& out, T value) {
  const View* const views[1] = {&out};
  const auto nest = make_nest<1>(views);
  T* o = out.ptr<T>();
  for_rows(c, nest, [&](const int64_t* at, int64_t n) {
    const int64_t s = nest.inner_stride[0];
    if (s == 1)
      for (int64_t k = 0; k < n; ++k) o[at[0] + k] = value;
    else
      for (int64_t k = 0; k < n; ++k) o[at[0] + k * s] = value;
  });
}

static void fill_view(const Call& c, const View& out, double f, int64_t i) {
  switch (out.dtype) {
    case DType::boolean: return fill_sized(c, out, uint8_t(i != 0));
    case DType::u8:
    case DType::i8: return fill_sized(c, out, uint8_t(i));
    case DType::i32: return fill_sized(c, out, uint32_t(i));
    case DType::i64: return fill_sized(c, out, uint64_t(i));
    case DType::f16: return fill_sized(c, out, to_f16(float(f)));
    case DType::bf16: return fill_sized(c, out, to_bf16(float(f)));
    case DType::f32: return fill_sized(c, out, float_to_bits(float(f)));
    case DType::f64: {
      uint64_t bits;
      memcpy(&bits, &f, 8);
      return fill_sized(c, out, bits);
    }
  }
}

// out[0] = attrs.f[0], or attrs.i[0] for integers; any strides
void fill(const Call& c) { fill_view(c, c.out[0], c.attrs->f[0], c.attrs->i[0]); }

// out[0][i] = attrs.f[0] + i * attrs.f[1]
void arange(const Call& c) {
  const double start = c.attrs->f[0], step = c.attrs->f[1];
  RILLE_NUMBERS(c.out[0].dtype, {
    T* o = c.out[0].ptr<T>();
    for_stoppable(c, c.out[0].count(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) o[i] = T(start + double(i) * step);
    });
  });
}

// The view of `length` elements from `start` along `dim`.
static View window(const View& v, int dim, int64_t start, int64_t length) {
  View w = v;
  w.shape[dim] = length;
  w.data = static_cast<char*>(v.data) + size_t(start * v.strides[dim]) * size_bytes(v.dtype);
  return w;
}

// out[0] (contiguous) = in[0], in[1], ... concatenated along dimension attrs.i[0]
void cat(const Call& c) {
  const int dim = int(c.attrs->i[0]);
  int64_t start = 0;
  for (int k = 0; k < c.n_in; ++k) {
    copy_view(c, c.in[k], window(c.out[0], dim, start, c.in[k].shape[dim]));
    start += c.in[k].shape[dim];
  }
}

// out[0] = zeros, with in[0] at position attrs.i[1] of dimension attrs.i[0]: the gradient of narrow
void pad(const Call& c) {
  const int dim = int(c.attrs->i[0]);
  const int64_t start = c.attrs->i[1], length = c.in[0].shape[dim], size = c.out[0].shape[dim];
  fill_view(c, window(c.out[0], dim, 0, start), 0, 0);
  copy_view(c, c.in[0], window(c.out[0], dim, start, length));
  fill_view(c, window(c.out[0], dim, start + length, size - start - length), 0, 0);
}

}  // namespace rille::kernels::RILLE_ISA
