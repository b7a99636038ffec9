// Checks that several operations share, and casts to a common type. Not for bindings.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "runtime/tensor/ops.hpp"
#include "runtime/tensor/record.hpp"

namespace rille::tensor {

inline Error bad(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::invalid, std::move(message), std::move(hint));
}

inline Result<void> need(std::string_view op, const Tensor& t) {
  if (!t) return bad(fmt::format("{}: an empty tensor handle", op));
  return success();
}

// f32 or f64, which kernels compute in.
inline Result<void> need_float(std::string_view op, const Tensor& t) {
  RILLE_CHECK(need(op, t));
  if (t.dtype() == DType::f32 || t.dtype() == DType::f64) return success();
  return bad(
      fmt::format("{}: {}{}: computed in f32 or f64 only", op, name_of(t.dtype()), to_string(t.shape())),
      "cast it to f32");
}

inline Result<void> need_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return success();
  return bad(fmt::format("{}: {}{} and {}{}: types differ", op, name_of(a.dtype()), to_string(a.shape()),
                         name_of(b.dtype()), to_string(b.shape())),
             "cast one of them");
}

inline bool is_integer(DType t) { return t == DType::u8 || t == DType::i32 || t == DType::i64; }

// Integers and bool become f32.
inline Result<Tensor> as_float(std::string_view op, const Tensor& t) {
  RILLE_CHECK(need(op, t));
  if (is_floating(t.dtype())) {
    RILLE_CHECK(need_float(op, t));
    return t;
  }
  return cast(t, DType::f32);
}

}  // namespace rille::tensor
