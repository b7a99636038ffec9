// Reads integers of any type from contiguous memory: row ids, class labels, indices.
#pragma once

#include "kernels/call.hpp"

namespace rille::kernels {

static inline int64_t id_at(const View& v, int64_t i) {
  return v.dtype == DType::i64   ? v.ptr<int64_t>()[i]
         : v.dtype == DType::i32 ? v.ptr<int32_t>()[i]
         : v.dtype == DType::i8  ? v.ptr<int8_t>()[i]
                                 : v.ptr<uint8_t>()[i];
}

}  // namespace rille::kernels
