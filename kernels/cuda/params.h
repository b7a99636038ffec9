// The structs that the host code (*.cpp) passes by value to kernels (*.cu). Compiled by the host's compiler, nvcc,
// NVRTC and the CPU shim, so there is no include and only plain types.
#pragma once

namespace rille::kernels::cuda {

// A data error that a kernel found, in device memory. The first error is kept (atomicCAS on `code`). The host reads it
// when it waits for the stream, and makes the message that the CPU kernel would give (describe()).
struct Fault {
  unsigned code = 0;                    // FaultCode; 0: no error
  unsigned type = 0;                    // the DType of the element, if the message names it
  long long value = 0, limit = 0;       // the bad number, and the end of the valid range
  long long place = 0;                  // index of the bad number
};

enum FaultCode : unsigned {
  no_fault, floor_divide_by_zero, remainder_by_zero, cross_entropy_label, embedding_id, gather_number, scatter_number,
  scatter_add_number, index_select_number, index_add_number,
  multinomial_weight,                   // value: the bits of a double; limit: index in the row
  multinomial_sum                       // value: the bits of a double
};

// The part of the random key that changes with each step; in device memory, so that a captured graph draws new numbers.
struct StepKey {
  unsigned long long seed = 0, step = 0;
};

constexpr int rank_max = 8;

// n / divisor = (high half of n * multiplier, plus n) >> shift, for n < 2^31 (Granlund and Montgomery 1994).
struct Divider { unsigned divisor, multiplier, shift; };

// N views of one shape that a kernel visits together; the last one is the output. Dimensions that are contiguous in all
// views are merged, and the fastest comes first. A unit is one element, or a pack of elements if every view allows wide
// loads.
template <int N> struct Windows {
  void* data[N];
  long long step[N][rank_max];          // in elements, from one unit to the next
  Divider size[rank_max];
  unsigned units, tail;                 // tail: elements after the last full pack (only if rank is 1)
  int rank;                             // number of merged dimensions, at least 1
  int packed;
  unsigned spread;                      // bit k: one element of operand k serves a whole pack
  int constant;                         // index of the operand that is the constant number[0]; -1: no such operand
  double number[2];
  unsigned type;
  Fault* fault;
};

// -- rows and channels (norms.cu)
struct Plane {                          // [batch, channels, s]; a block takes a share of a channel
  long long channels, s, count, each;   // count: elements of a channel; each: of a share
  Divider by_s;                         // divisor 0: count is 2^31 or more, so divide in 64 bits
};

// -- many tensors in one launch (optimizer.cu)
constexpr int tensors_max = 60, tensor_piece = 8192;   // tensor_piece: elements per block
struct Tensors {
  void* data[4][tensors_max];           // up to four memories per tensor; the kernel says which is which
  long long elements[tensors_max];
  unsigned first_piece[tensors_max];
  unsigned number[tensors_max];         // index of the tensor in the call
  int count;
  unsigned long long packed;            // bit i: all memories of tensor i are aligned for packs
};
struct Update {
  double beta1, beta2, eps, decay;      // beta1 is also the momentum, or the weight of the average
  int coupled, nesterov;                // coupled: adds the weight decay to the gradient
  const float* skip;                    // flag in device memory; set: change nothing; null: no flag
};

// -- attention (attention.cu)
struct Strided { void* data; long long batch, head, row; };   // [b, h, t, d]; strides in elements, 1 for d
struct Attention {
  Strided q, k, v, o, go, dq, dk, dv;
  void *lse, *delta;                    // [b, h, t]: log-sum-exp; sums of dO * O
  const void* mask;                     // [b, h, t, s], with the strides mask_step
  const long long* lengths;             // [b], number of keys per batch entry; null: all keys
  long long mask_step[4];
  int mask_kind;                        // 0: no mask; 1: bool; 2: added to the scores
  int batch, heads, groups, t, s, d, e; // groups: number of key and value heads
  int causal;
  double scale;
};

// -- convolution and pooling (convolution.cu, pool.cu)
struct Convolution {
  const void *x, *weight, *y, *bias;
  void *out, *parts;                    // parts: [gridDim.z][out], partial sums if inner is divided
  long long x_step[4], w_step[4], y_step[4], bias_step;
  int groups, outs, ins, h, w, oh, ow;  // outs, ins: output and input channels of one group
  int stride[2], padding[2], dilation[2];
  unsigned rows, columns, inner, each;  // sizes of the matrix product; each: inner size of one share
  Divider by_window, by_window_width, by_output, by_output_width, by_input, by_input_width;
};
struct Pooling {
  long long planes;
  int size[2], outputs[2], window[2], stride[2], padding[2], dilation[2];
  int padding_counts, adaptive;
};

// -- indexing (index.cu)
struct Steps { long long index, src, out; };      // element strides along the indexed dimension
struct SortPass {
  long long count, tile;                // elements in total, and elements per block
  unsigned shift;
  long long row;                        // not 0: length of a row; sorts by the row that contains an element
  Divider by_row;                       // divisor 0: indices reach 2^31, so divide in 64 bits
};

// -- reductions (reduce.cu)
struct Axes {                           // merged dimensions of one view, the fastest first
  int rank, wide;                       // wide: 2^31 elements or more, so divide in 64 bits
  Divider size[rank_max];
  long long length[rank_max], step[rank_max];
};
struct Reduction {
  const void* in;
  void *out, *parts;                    // parts: [gridDim.y][outputs], if there are several parts
  long long outputs, reduced, each;     // each: number of elements that one part reduces
  Axes outer, inner;
  int vertical, outputs_log2, packed;   // vertical: neighbours in memory belong to different outputs
  double factor;
};

// -- matrix products (matmul.cu)
struct Product {
  const void *a, *b, *bias;
  void* out;                            // the result, contiguous
  long long m, n, k, a_row, a_column, b_row, b_column, batches;
  int rank;                             // number of batch dimensions, the fastest first
  long long size[rank_max], a_batch[rank_max], b_batch[rank_max];
};

}  // namespace rille::kernels::cuda
