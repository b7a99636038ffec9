// Runs several element-wise operations as one: rows are computed in pieces, so that intermediate results stay in the
// cache. Each piece is computed by the row functions of the separate operations, so the results are bit-equal.
#pragma once

#include "kernels/call.hpp"
#include "kernels/operations.hpp"

namespace rille::kernels {

// What an element-wise kernel stores in Call::rows: how it computes a row (kernels/walk.hpp).
struct RowAnswer {
  void* row = nullptr;  // a Row, compiled for the processor's instruction set
  bool raw = false;     // the row function takes f16 and bf16 as they are, because it only copies elements
  int operands = 0;     // number of operands; the last one is the output
  int operand[4] = {};  // indices of the call's inputs; -1: the operand is `number`
  double number = 0;    // a constant operand; its first bytes hold an element of number_dtype
  DType number_dtype = DType::f32;
  double numbers[8] = {};
};

// A list of steps on numbered places: first the call's inputs, then its outputs, then temporaries that live for one
// row.
struct Fused : Payload {
  static constexpr int most_operands = 12, most_pieces = 8, most_steps = 24, piece = 1024;
  struct Step {
    OpId op = OpId::count;
    RowAnswer answer;
    int place[4] = {};  // place of each operand of `answer`; -1: its number
    DType dtype[4] = {};
  };
  Step steps[most_steps];
  int n_steps = 0, n_pieces = 0;
  mutable void* function = nullptr;  // CUDA: the kernel generated for all steps; null: the steps run one by one
};

}  // namespace rille::kernels
