// Several element-wise operations as one: rows are computed in pieces, so that intermediate results stay in the cache.
// Each piece is computed by the same row functions as the separate operations, so the results are bit-identical.
#pragma once

#include "kernels/call.hpp"
#include "kernels/operations.hpp"

namespace rille::kernels {

// An element-wise kernel's answer in Call::rows: how it computes a row (kernels/walk.hpp).
struct RowAnswer {
  void* row = nullptr;  // a Row for the processor's instruction set
  bool raw = false;     // moves elements without computing: f16 and bf16 are not widened
  int operands = 0;     // includes the output, which is the last
  int operand[4] = {};  // indices of the call's inputs; -1: `number`
  double number = 0;    // stored as an element of number_dtype in the first bytes
  DType number_dtype = DType::f32;
  double numbers[8] = {};
};

// A list of row steps on numbered places: the call's inputs, then its outputs, then temporaries that live for one row.
struct Fused : Payload {
  static constexpr int most_operands = 12, most_pieces = 8, most_steps = 24, piece = 1024;
  struct Step {
    OpId op = OpId::count;
    RowAnswer answer;
    int place[4] = {};  // per operand of `answer`; -1: the number
    DType dtype[4] = {};
  };
  Step steps[most_steps];
  int n_steps = 0, n_pieces = 0;
  mutable void* function = nullptr;  // CUDA: the kernel generated for all steps; null: the steps run one by one
};

}  // namespace rille::kernels
