// Element types, and the sizes and names that everything agrees on. The first header of kernels/: includes
// nothing of Rille.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rille {

// The order is the order of promotion: of two operands' types, the later one wins.
enum class DType : std::uint8_t { boolean, u8, i32, i64, bf16, f32, f64 };

constexpr std::size_t size_bytes(DType t) {
  switch (t) {
    case DType::boolean: case DType::u8: return 1;
    case DType::bf16: return 2;
    case DType::i32: case DType::f32: return 4;
    case DType::i64: case DType::f64: return 8;
  }
  return 0;
}

constexpr const char* name_of(DType t) {  // as scripts spell it: dtype = "f32"
  switch (t) {
    case DType::boolean: return "bool";
    case DType::u8: return "u8";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::bf16: return "bf16";
    case DType::f32: return "f32";
    case DType::f64: return "f64";
  }
  return "?";
}

constexpr bool is_floating(DType t) { return t == DType::bf16 || t == DType::f32 || t == DType::f64; }

}  // namespace rille
