// Launches that copy, cast and fill memory.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

const Call no_attributes{};

bool contiguous(const View& v) {
  std::int64_t step = 1;
  for (int d = v.shape.n - 1; d >= 0; --d) {
    if (v.shape[d] != 1 && v.strides[d] != step) return false;
    step *= v.shape[d];
  }
  return true;
}

// Names of the cast kernels by the type of the source, then by the type of the result.
#define TO(from) {"cast_" from "_bool", "cast_" from "_u8", "cast_" from "_i8", "cast_" from "_i32", \
                  "cast_" from "_i64", "cast_" from "_f16", "cast_" from "_bf16", "cast_" from "_f32", \
                  "cast_" from "_f64"}
constexpr Names casts[9] = {{TO("u8")},  {TO("u8")},  {TO("i8")},  {TO("i32")}, {TO("i64")},
                            {TO("f16")}, {TO("bf16")}, {TO("f32")}, {TO("f64")}};
#undef TO

std::uint16_t half_bits(DType t, float f) {
  std::uint32_t u, shifted;
  std::memcpy(&u, &f, 4);
  if (t == DType::bf16) return std::uint16_t(f != f ? (u >> 16) | 0x40 : (u + 0x7fff + ((u >> 16) & 1)) >> 16);
  const std::uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a >= 0x47800000) return std::uint16_t(sign | (a > 0x7f800000 ? 0x7e00 : 0x7c00));
  if (a >= 0x38800000) return std::uint16_t(sign | ((a + 0xc8000fff + (a >> 13 & 1)) >> 13));
  std::memcpy(&f, &a, 4);                         // subnormal: the addition rounds
  f += 0.5f;
  std::memcpy(&shifted, &f, 4);
  return std::uint16_t(sign | (shifted - 0x3f000000));
}

// The view of `length` indices from `start` along `dim`.
View window(const View& v, int dim, std::int64_t start, std::int64_t length) {
  View w = v;
  w.shape[dim] = length;
  w.data = static_cast<char*>(v.data) + start * v.strides[dim] * std::int64_t(size_bytes(v.dtype));
  return w;
}

}  // namespace

void copy_view(Launcher& l, const View& in, const View& out) {
  const std::size_t from = size_bytes(in.dtype), to = size_bytes(out.dtype);
  const View* const views[2] = {&in, &out};
  if (in.dtype != out.dtype)
    return launch_windows<2>(l, casts[int(in.dtype)].of[int(out.dtype)], views, no_attributes,
                             pack_of(std::max(from, to)));
  if (out.count() && contiguous(in) && contiguous(out)) {
    if (in.data != out.data) l.copy(out.data, in.data, std::size_t(out.count()) * to);
    return;
  }
  launch_windows<2>(l, RILLE_SIZED("copy", to), views, no_attributes, pack_of(to));
}

void fill_view(Launcher& l, const View& out, double f, std::int64_t i) {
  const float single = float(f);
  std::int64_t value = i;
  if (out.dtype == DType::boolean) value = i != 0;
  else if (is_half(out.dtype)) value = half_bits(out.dtype, single);
  else if (out.dtype == DType::f32) std::memcpy(&value, &single, 4);
  else if (out.dtype == DType::f64) std::memcpy(&value, &f, 8);
  const std::size_t size = size_bytes(out.dtype);
  const View* const views[1] = {&out};
  each_windows<1>(l, views, no_attributes, pack_of(size), -1, [&](const Windows<1>& w) {
    launch(l, RILLE_SIZED("fill", size), grid_for(l, std::max(w.units, w.tail)), {threads}, 0, w, (long long)(value));
  });
}

void copy(const Call& c, Launcher& l, const Names&) { copy_view(l, c.in[0], c.out[0]); }

void where(const Call& c, Launcher& l, const Names&) {
  const std::size_t size = size_bytes(c.out[0].dtype);
  const View* const views[4] = {&c.in[0], &c.in[1], &c.in[2], &c.out[0]};
  launch_windows<4>(l, RILLE_SIZED("where", size), views, c, pack_of(size));
}

void fill(const Call& c, Launcher& l, const Names&) { fill_view(l, c.out[0], c.attrs->f[0], c.attrs->i[0]); }

void arange(const Call& c, Launcher& l, const Names& names) {
  const std::int64_t n = c.out[0].count();
  if (n == 0) return;
  launch(l, name_in(names, c.out[0].dtype), grid_for(l, n), {threads}, 0, c.out[0].data, (long long)n, c.attrs->f[0],
         c.attrs->f[1]);
}

void cat(const Call& c, Launcher& l, const Names&) {
  const int dim = int(c.attrs->i[0]);
  std::int64_t start = 0;
  for (int k = 0; k < c.n_in; ++k) {
    copy_view(l, c.in[k], window(c.out[0], dim, start, c.in[k].shape[dim]));
    start += c.in[k].shape[dim];
  }
}

void pad(const Call& c, Launcher& l, const Names&) {
  const int dim = int(c.attrs->i[0]);
  const std::int64_t start = c.attrs->i[1], length = c.in[0].shape[dim], size = c.out[0].shape[dim];
  fill_view(l, window(c.out[0], dim, 0, start), 0, 0);
  copy_view(l, c.in[0], window(c.out[0], dim, start, length));
  fill_view(l, window(c.out[0], dim, start + length, size - start - length), 0, 0);
}

}  // namespace rille::kernels::cuda
