// Several element-wise operations as one: their rows are computed piece by piece, and what lies between them stays in
// the cache. Each piece is computed by the very functions that the operations run alone, so not a bit differs.
#pragma once

#include "kernels/call.hpp"
#include "kernels/operations.hpp"

namespace rille::kernels {

// What an element-wise kernel answers to Call::rows: how it computes a row (kernels/walk.hpp).
struct RowAnswer {
  void* row = nullptr;  // a Row of the processor's instruction set
  bool raw = false;     // elements are moved, not computed: f16 and bf16 as they are
  int operands = 0;     // with the output, the last
  int operand[4] = {};  // which of the call's inputs; -1: the number
  double number = 0;    // as an element, in its first bytes
  DType number_dtype = DType::f32;
  double numbers[8] = {};
};

// A list of rows on places: first the call's inputs, then its outputs, then pieces of memory that live for a row only.
struct Fused : Payload {
  static constexpr int most_operands = 12, most_pieces = 8, most_steps = 24, piece = 1024;
  struct Step {
    OpId op = OpId::count;
    RowAnswer answer;
    int place[4] = {};  // of each of the answer's operands; -1: the number
    DType dtype[4] = {};
  };
  Step steps[most_steps];
  int n_steps = 0, n_pieces = 0;
  mutable void* function = nullptr;  // CUDA: the one kernel that was generated for it; null: one by one
};

}  // namespace rille::kernels
