// Every kernel of the CPU, declared from the operations' table by how it is built:
//
// - each: its file is compiled once per instruction set (kernels/*.cpp), and the best that the processor has is called.
// - wide: the same, and it knows f32 and f64 only: it is called through widened().
// - rows: the same, through widened_rows(). rows_w: input 1 is a weight; rows_wb: and input 2 a bias.
// - once: its file is compiled once (kernels/generic).
//
// What a kernel takes and gives stands at its definition.
#pragma once

#include "kernels/operations.hpp"
#include "kernels/wide_rows.hpp"

// A kernel's three builds, and the function that calls the processor's through `how`.
#define RILLE_KERNEL_THROUGH(name, how, ...)                                                  \
  RILLE_KERNEL_BUILDS(name)                                                                   \
  namespace rille::kernels {                                                                  \
  inline void name(const Call& c) { how(c, RILLE_BEST_OF(name) __VA_OPT__(, ) __VA_ARGS__); } \
  }
#define RILLE_KERNEL_each(name) RILLE_KERNEL(name)
#define RILLE_KERNEL_wide(name) RILLE_KERNEL_THROUGH(name, widened)
#define RILLE_KERNEL_rows(name) RILLE_KERNEL_THROUGH(name, widened_rows, 0)
#define RILLE_KERNEL_rows_w(name) RILLE_KERNEL_THROUGH(name, widened_rows, 0b010)
#define RILLE_KERNEL_rows_wb(name) RILLE_KERNEL_THROUGH(name, widened_rows, 0b110)
#define RILLE_KERNEL_once(name) \
  namespace rille::kernels {    \
  void name(const Call&);       \
  }
#define RILLE_KERNEL_same(name)
#define RILLE_KERNEL_none(name)

#define RILLE_DECLARE(operation, kernel, build, ...) RILLE_KERNEL_##build(kernel)
RILLE_OPERATIONS(RILLE_DECLARE)
#undef RILLE_DECLARE
