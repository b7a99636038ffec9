// Checks that several operations use, and casts to a common type. Not for bindings.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "runtime/compute/tensor/ops.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

inline Error bad(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::invalid, std::move(message), std::move(hint));
}

inline Result<void> need(std::string_view op, const Tensor& t) {
  if (!t)
    return bad(fmt::format("{}: an empty tensor handle", op),
               "pass a tensor that an operation returned; a Tensor that nothing was assigned to is empty");
  return success();
}

inline Result<void> need_float(std::string_view op, const Tensor& t) {
  RILLE_CHECK(need(op, t));
  if (is_floating(t.dtype())) return success();
  return bad(fmt::format("{}: {}{}: expected a floating type", op, name_of(t.dtype()), to_string(t.shape())),
             "cast it: t:to(\"f32\")");
}

// Checks two operands, of which only `t` must be floating.
inline Result<void> need_float_beside(std::string_view op, const Tensor& t, const Tensor& other) {
  RILLE_CHECK(need(op, t));
  RILLE_CHECK(need(op, other));
  if (is_floating(t.dtype())) return success();
  return bad(fmt::format("{}: {}{} with {}{}: expected a floating type for the first", op, name_of(t.dtype()),
                         to_string(t.shape()), name_of(other.dtype()), to_string(other.shape())),
             "cast it: t:to(\"f32\")");
}

inline Result<void> need_label_smoothing(double share) {
  if (share >= 0 && share <= 1) return success();
  return bad(fmt::format("cross_entropy: a label smoothing of {}: expected 0 to 1", share));
}

// Checks that both operands are floating; the message names both.
inline Result<void> need_floats(std::string_view op, const Tensor& a, const Tensor& b) {
  RILLE_CHECK(need(op, a));
  RILLE_CHECK(need(op, b));
  if (is_floating(a.dtype()) && is_floating(b.dtype())) return success();
  return bad(fmt::format("{}: {}{} and {}{}: expected floating types", op, name_of(a.dtype()), to_string(a.shape()),
                         name_of(b.dtype()), to_string(b.shape())),
             "cast the other one: t:to(\"f32\")");
}

inline Result<void> need_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return success();
  return bad(fmt::format("{}: {}{} and {}{}: types differ", op, name_of(a.dtype()), to_string(a.shape()),
                         name_of(b.dtype()), to_string(b.shape())),
             "cast one of them");
}

// Casts integers and bool to f32; returns floating tensors as they are.
inline Result<Tensor> as_float(std::string_view op, const Tensor& t) {
  RILLE_CHECK(need(op, t));
  return is_floating(t.dtype()) ? Result<Tensor>(t) : cast(t, DType::f32);
}

inline Result<void> need_ids(const char* op, const char* what, const Tensor& t) {
  RILLE_CHECK(need(op, t));
  if (is_integer(t.dtype())) return success();
  return bad(fmt::format("{}: {} of {}{}: expected whole numbers", op, what, name_of(t.dtype()), to_string(t.shape())),
             "cast them: t:to(\"i64\")");
}

// Casts half types to f32, because they are too coarse to accumulate in.
inline Result<Tensor> wide(const Tensor& t) { return cast(t, stats_type(t.dtype())); }

// Applies `f` to a contiguous copy with `dim` as the last dimension, then moves that dimension back.
template <class F>
Result<Tensor> over_last(const char* op, const Tensor& a, int dim, const F& f) {
  RILLE_TRY(const int d, normal_dim(op, dim, a.rank()));
  if (d == a.rank() - 1) {
    RILLE_TRY(const auto rows, contiguous(a));
    return f(rows);
  }
  RILLE_TRY(const auto moved, transpose(a, d, -1));
  RILLE_TRY(const auto rows, contiguous(moved));
  RILLE_TRY(const auto y, f(rows));
  return transpose(y, d, -1);
}

}  // namespace rille::tensor
