// Declares every CPU kernel of the table of operations. The column `build` says how:
//
// - each: the file is compiled once per instruction set (kernels/*.cpp); calls the best build for the processor.
// - wide: like each, but the kernel supports only f32 and f64, so it is called through widened().
// - rows: like wide, but through widened_rows(). rows_w: input 1 is a weight; rows_wb: input 2 is also a bias.
// - once: the file is compiled once (kernels/generic).
//
// A kernel's definition documents its inputs and outputs.
#pragma once

#include "kernels/operations.hpp"
#include "kernels/wide_rows.hpp"

// Declares the three builds of a kernel, and defines the function that calls the processor's build through `how`.
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
