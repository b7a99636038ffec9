// What launches (*.cpp) hand to kernels (*.cu) by value. Read by the host's compiler, by nvcc and NVRTC, and by the
// shim: no include, only plain types.
#pragma once

namespace rille::kernels::cuda {

// What a kernel found wrong with its data, in device memory; the first writer's stays (atomicCAS on `code`). The host
// reads it when it waits for the stream and turns it into the CPU kernel's words (describe()).
struct Fault {
  unsigned code = 0;                    // FaultCode; 0: all is well
  unsigned type = 0;                    // the element type, where the words name one
  long long value = 0, limit = 0;       // the number that is out of range, and the range's end
  long long place = 0;                  // where it stands
};

enum FaultCode : unsigned {
  no_fault, floor_divide_by_zero, remainder_by_zero, cross_entropy_label, embedding_id, gather_number, scatter_number,
  scatter_add_number, index_select_number, index_add_number,
  multinomial_weight,                   // value: a double's bits; limit: the place in the row
  multinomial_sum                       // value: a double's bits
};

// The key's part that changes from step to step, in device memory, so that a captured graph draws anew.
struct StepKey {
  unsigned long long seed = 0, step = 0;
};

constexpr int rank_max = 8;

// n / divisor = (high half of n * multiplier, plus n) >> shift, for n < 2^31 (Granlund and Montgomery 1994).
struct Divider { unsigned divisor, multiplier, shift; };

// N windows of one shape, walked together; the last one is written. Dimensions that lie next to each other are joined,
// and the fastest comes first. A unit is one element, or a pack of them where all rows allow wide loads.
template <int N> struct Windows {
  void* data[N];
  long long step[N][rank_max];          // in elements, from unit to unit
  Divider size[rank_max];
  unsigned units, tail;                 // tail: elements behind the last pack; only of one-dimensional windows
  int rank;                             // at least 1
  int packed;
  unsigned spread;                      // bit k: operand k has one element for all of a pack
  int constant;                         // the operand that is number[0] in truth; -1: none
  double number[2];
  unsigned type;
  Fault* fault;
};

// -- rows and channels (norms.cu)
struct Plane {                          // [batch, channels, s]: a share of one channel's batch * s elements
  long long channels, s, count, each;   // count: of one channel; each: of a share
  Divider by_s;                         // divisor 0: count is beyond 2^31
};

// -- many tensors in one launch (optimizer.cu)
constexpr int tensors_max = 60, tensor_piece = 8192;   // elements that one block takes
struct Tensors {
  void* data[4][tensors_max];           // up to four memories for each tensor, by their roles
  long long elements[tensors_max];
  unsigned first_piece[tensors_max];
  unsigned number[tensors_max];         // which of the call's tensors it is
  int count;
  unsigned long long packed;            // bit i: all of tensor i's memories are aligned for packs
};
struct Update {
  double beta1, beta2, eps, decay;      // beta1: also the momentum, or the average's weight
  int coupled, nesterov;                // coupled: the decay is added to the gradient
  const float* skip;                    // nothing is changed where this is set; null: always
};

// -- attention (attention.cu)
struct Strided { void* data; long long batch, head, row; };   // [b, h, t, d], in elements; the last stride is 1
struct Attention {
  Strided q, k, v, o, go, dq, dk, dv;
  void *lse, *delta;                    // [b, h, t]
  const void* mask;                     // [b, h, t, s]
  const long long* lengths;             // [b], or null
  long long mask_step[4];
  int mask_kind;                        // 0: none; 1: bool; 2: added to the scores
  int batch, heads, groups, t, s, d, e; // groups: heads of keys and values
  int causal;
  double scale;
};

// -- convolution and pooling (convolution.cu, pool.cu)
struct Convolution {
  const void *x, *weight, *y, *bias;
  void *out, *parts;                    // parts: [gridDim.z][out], where the inner dimension is shared out
  long long x_step[4], w_step[4], y_step[4], bias_step;
  int groups, outs, ins, h, w, oh, ow;  // outs, ins: channels of one group
  int stride[2], padding[2], dilation[2];
  unsigned rows, columns, inner, each;  // of the product; each: of the inner dimension, for a share
  Divider by_window, by_window_width, by_output, by_output_width, by_input, by_input_width;
};
struct Pooling {
  long long planes;
  int size[2], outputs[2], window[2], stride[2], padding[2], dilation[2];
  int padding_counts, adaptive;
};

// -- numbers of rows (index.cu)
struct Steps { long long index, src, out; };      // along the dimension that is walked
struct SortPass {
  long long count, tile;                // elements in all, and of one block
  unsigned shift;
  long long row;                        // not 0: sorted by the row of that many places that an element stands in
  Divider by_row;                       // divisor 0: places are beyond 2^31
};

// -- reductions (reduce.cu)
struct Axes {                           // joined dimensions of one window, the fastest first
  int rank, wide;                       // wide: beyond 2^31 elements, divided in 64 bits
  Divider size[rank_max];
  long long length[rank_max], step[rank_max];
};
struct Reduction {
  const void* in;
  void *out, *parts;                    // parts: [gridDim.y][outputs], where there is more than one part
  long long outputs, reduced, each;     // each: elements of one part
  Axes outer, inner;
  int vertical, outputs_log2, packed;   // vertical: outputs, not what is reduced, are neighbours in memory
  double factor;
};

// -- matrix products (matmul.cu)
struct Product {
  const void *a, *b, *bias;
  void* out;                            // contiguous
  long long m, n, k, a_row, a_column, b_row, b_column, batches;
  int rank;                             // of the batch, the fastest first
  long long size[rank_max], a_batch[rank_max], b_batch[rank_max];
};

}  // namespace rille::kernels::cuda
