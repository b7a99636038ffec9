// Runs element-wise kernels. A kernel is a row function, chosen by type; this file merges dimensions, distributes rows
// over threads, and converts f16 and bf16, once per number of operands.
//
// Each output element depends on one element of every input. Binary kernels take in[0] and in[1] of the same shape
// (strides of 0 broadcast), or one input and the number attrs.f[0], which is the left operand if attrs.i[0] is 1. The
// output may alias an input. f16 and bf16 are computed in f32 and rounded once.
#pragma once

#include "kernels/fused.hpp"
#include "kernels/half.hpp"
#include "kernels/nest.hpp"

namespace rille::kernels::RILLE_ISA {

// A row of n elements per operand: p[k] is the start of operand k (inputs, then the output), s[k] its stride in
// elements; `numbers` are attrs.f of the operation. The output may alias an input with the same stride.
using Row = void (*)(char* const* p, const int64_t* s, int64_t n, const double* numbers);

// The type in which elements of type `t` are computed.
static inline DType row_type(DType t) { return is_half(t) ? DType::f32 : t; }

static constexpr int64_t half_piece = 512;  // f16 and bf16 are widened so many elements at a time, to stay in the cache

// Runs `row` on `count` operands, some of which are f16 or bf16, through f32 copies of these.
static void half_rows(const DType* dtype, int count, char* const* p, const int64_t* s, int64_t n, Row row,
                      const double* numbers) {
  float wide[4][half_piece];
  const int last = count - 1;
  for (int64_t first = 0; first < n; first += half_piece) {
    const int64_t m = n - first < half_piece ? n - first : half_piece;
    char* q[4];
    int64_t t[4];
    for (int k = 0; k < count; ++k) {
      q[k] = p[k] + first * s[k] * int64_t(size_bytes(dtype[k]));
      t[k] = s[k];
      if (!is_half(dtype[k])) continue;
      if (k < last) widen_row(dtype[k], reinterpret_cast<const uint16_t*>(q[k]), s[k], wide[k], s[k] ? m : 1);
      q[k] = reinterpret_cast<char*>(wide[k]);
      t[k] = s[k] ? 1 : 0;
    }
    if (is_half(dtype[last])) t[last] = 1;
    row(q, t, m, numbers);
    if (is_half(dtype[last])) {
      char* o = p[last] + first * s[last] * 2;
      narrow_row(dtype[last], wide[last], reinterpret_cast<uint16_t*>(o), s[last], m);
    }
  }
}

// Runs `row` over N views of the same shape, the last of which is the output.
template <int N>
static void walk(const Call& c, const View* const (&v)[N], Row row, const double* numbers) {
  const auto nest = make_nest<N>(v);
  bool half = false;
  DType dtype[N];
  for (int k = 0; k < N; ++k) {
    dtype[k] = v[k]->dtype;
    half = half || is_half(dtype[k]);
  }
  for_rows(c, nest, [&](const int64_t* at, int64_t n) {
    char* p[N];
    for (int k = 0; k < N; ++k) p[k] = v[k]->template ptr<char>() + at[k] * int64_t(size_bytes(v[k]->dtype));
    if (half) half_rows(dtype, N, p, nest.inner_stride, n, row, numbers);
    else row(p, nest.inner_stride, n, numbers);
  });
}

// Makes a row function of a functor: F::go(a, b, numbers...) on two operands of type T, with a result of type R.
template <class F, class T, class R>
static void row2(char* const* p, const int64_t* s, int64_t n, const double* numbers) {
  const T *a = reinterpret_cast<const T*>(p[0]), *b = reinterpret_cast<const T*>(p[1]), f = T(numbers[0]);
  R* o = reinterpret_cast<R*>(p[2]);
  if (s[2] == 1 && s[0] == 1 && s[1] == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) o[i] = F::go(a[i], b[i], f);
  } else if (F::broadcasts && s[2] == 1 && s[0] == 1 && s[1] == 0) {
    const T y = *b;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) o[i] = F::go(a[i], y, f);
  } else if (F::broadcasts && s[2] == 1 && s[0] == 0 && s[1] == 1) {
    const T x = *a;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) o[i] = F::go(x, b[i], f);
  } else {
    for (int64_t i = 0; i < n; ++i) o[i * s[2]] = F::go(a[i * s[0]], b[i * s[1]], f);
  }
}

// Makes a row function of a functor on one operand: F::go(x, two numbers).
template <class F, class T, class R>
static void row1(char* const* p, const int64_t* s, int64_t n, const double* numbers) {
  const T *x = reinterpret_cast<const T*>(p[0]), f = T(numbers[0]), g = T(numbers[1]);
  R* y = reinterpret_cast<R*>(p[1]);
  if (s[0] == 1 && s[1] == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = F::go(x[i], f, g);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * s[1]] = F::go(x[i * s[0]], f, g);
  }
}

// If the caller wants only the row function (Call::rows), stores it there and returns true. Its operands are the call's
// inputs and output.
static inline bool asked(const Call& c, Row row, bool raw = false) {
  if (!c.rows) return false;
  RowAnswer& a = *c.rows;
  a.row = reinterpret_cast<void*>(row);
  a.raw = raw;
  a.operands = c.n_in + 1;
  for (int k = 0; k <= c.n_in; ++k) a.operand[k] = k;
  memcpy(a.numbers, c.attrs->f, sizeof a.numbers);
  return true;
}

static inline void unary(const Call& c, Row row) {
  if (asked(c, row)) return;
  const View* const views[2] = {&c.in[0], &c.out[0]};
  walk<2>(c, views, row, c.attrs->f);
}

// Stores a number as an element of type t, which has at most eight bytes.
static inline void put_number(DType t, double number, void* at) {
  RILLE_NUMBERS(t, {
    const T value = T(number);
    memcpy(at, &value, sizeof value);
  });
}

// Runs a binary kernel on two inputs of the same shape, or on one input and the number attrs.f[0], which is the left
// operand if attrs.i[0] is 1.
static inline void binary(const Call& c, Row row) {
  double number = 0;
  View scalar = c.in[0];
  if (c.n_in == 1) {
    scalar.dtype = row_type(scalar.dtype);
    put_number(scalar.dtype, c.attrs->f[0], &number);
    for (int d = 0; d < scalar.strides.n; ++d) scalar.strides[d] = 0;
    scalar.data = &number;
  }
  const bool left = c.n_in == 1 && c.attrs->i[0] == 1;
  if (asked(c, row)) {
    if (c.n_in == 2) return;
    RowAnswer& answer = *c.rows;
    answer.operands = 3;
    answer.operand[left ? 0 : 1] = -1;
    answer.operand[left ? 1 : 0] = 0;
    answer.operand[2] = 1;
    answer.number = number;
    answer.number_dtype = scalar.dtype;
    return;
  }
  const View *a = left ? &scalar : &c.in[0], *b = c.n_in == 2 ? &c.in[1] : left ? &c.in[0] : &scalar;
  const View* const views[3] = {a, b, &c.out[0]};
  walk<3>(c, views, row, c.attrs->f);
}

}  // namespace rille::kernels::RILLE_ISA

// Chooses the row function of functor F by element type: for all numbers, for floats only, or for integers only.
#define RILLE_PICK(rows, F, t, R)               \
  [](::rille::DType dtype) -> Row {             \
    Row row = nullptr;                          \
    RILLE_NUMBERS(dtype, row = &rows<F, T, R>); \
    return row;                                 \
  }(row_type(t))
#define RILLE_PICK_FLOAT(rows, F, t) \
  (row_type(t) == ::rille::DType::f32 ? Row(&rows<F, float, float>) : Row(&rows<F, double, double>))
