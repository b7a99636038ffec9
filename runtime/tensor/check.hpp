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

inline Result<void> need_float(std::string_view op, const Tensor& t) {
  RILLE_CHECK(need(op, t));
  if (is_floating(t.dtype())) return success();
  return bad(fmt::format("{}: {}{}: want a floating type", op, name_of(t.dtype()), to_string(t.shape())),
             "cast it: t:to(\"f32\")");
}

inline Result<void> need_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return success();
  return bad(fmt::format("{}: {}{} and {}{}: types differ", op, name_of(a.dtype()), to_string(a.shape()),
                         name_of(b.dtype()), to_string(b.shape())),
             "cast one of them");
}

// Integers and bool become f32.
inline Result<Tensor> as_float(std::string_view op, const Tensor& t) {
  RILLE_CHECK(need(op, t));
  return is_floating(t.dtype()) ? Result<Tensor>(t) : cast(t, DType::f32);
}

}  // namespace rille::tensor
