// Kernels of functions.h for each floating type.
#include "kernels/cuda/device.h"

#define ONE(op, name, T) ENTRY(op##_##name, 256, GIVEN Windows<2> w) { apply_one<F_##op, T, T>(w); }
#define TWO(op, name, T) ENTRY(op##_##name, 256, GIVEN Windows<3> w) { apply_two<F_##op, T, T>(w); }
#define UNARY(op, expression) FUNCTION_1(op, expression) FOR_FLOATS(ONE, op)
#define BINARY(op, expression) FUNCTION_2(op, expression) FOR_FLOATS(TWO, op)
#include "kernels/cuda/functions.h"
