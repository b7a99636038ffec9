// Element types with their sizes and names, for every layer. Includes nothing else of Rille.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rille {

// In promotion order: two operands are computed in the later of their types; promote() has the exceptions.
enum class DType : std::uint8_t { boolean, u8, i8, i32, i64, f16, bf16, f32, f64 };

constexpr std::size_t size_bytes(DType t) {
  switch (t) {
    case DType::boolean:
    case DType::u8:
    case DType::i8: return 1;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::i32:
    case DType::f32: return 4;
    case DType::i64:
    case DType::f64: return 8;
  }
  return 0;
}

constexpr const char* name_of(DType t) {  // the name in scripts: dtype = "f32"
  switch (t) {
    case DType::boolean: return "bool";
    case DType::u8: return "u8";
    case DType::i8: return "i8";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::f32: return "f32";
    case DType::f64: return "f64";
  }
  return "?";
}

// Two-byte types: loaded as f32, computed in f32, and rounded once when the result is stored.
constexpr bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }
constexpr bool is_floating(DType t) { return is_half(t) || t == DType::f32 || t == DType::f64; }
constexpr bool is_integer(DType t) { return t > DType::boolean && t <= DType::i64; }
// The type in which sums and statistics of elements of type `t` are stored.
constexpr DType stats_type(DType t) { return is_half(t) ? DType::f32 : t; }

// The common type of two operands. u8 and i8 cannot represent each other, nor can f16 and bf16, so they become i32 and
// f32.
constexpr DType promote(DType a, DType b) {
  const DType low = a < b ? a : b, high = a < b ? b : a;
  if (low == DType::u8 && high == DType::i8) return DType::i32;
  if (low == DType::f16 && high == DType::bf16) return DType::f32;
  return high;
}

}  // namespace rille
