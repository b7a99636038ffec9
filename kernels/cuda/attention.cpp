// Attention: chooses the kernels and the number of rows per block.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

using Long = long long;

// A view [b, h, t, d] whose last stride is 1.
Strided strided(const View& v) { return {v.data, v.strides[0], v.strides[1], v.strides[2]}; }

// Whether sizes and block numbers fit 32 bits; the smallest block has four rows.
bool fits(const Call& c, const View& q, const View& k) {
  const std::int64_t most = (std::int64_t(1) << 31) - 64, longest = std::max(q.shape[2], k.shape[2]);
  const bool small = q.shape[0] < most && q.shape[1] < most && longest < most &&
                     (longest == 0 || q.shape[0] * q.shape[1] < most / blocks_for(longest, 4));
  if (!small) c.fail("attention: the tensor has more than 2^33 rows, too many for a CUDA device");
  return small;
}

Attention shape_of(const Call& c, const View& q, const View& k, const View& v, const View* mask, const View* lengths) {
  Attention a{};
  a.q = strided(q);
  a.k = strided(k);
  a.v = strided(v);
  a.batch = int(q.shape[0]);
  a.heads = int(q.shape[1]);
  a.groups = int(k.shape[1]);
  a.t = int(q.shape[2]);
  a.s = int(k.shape[2]);
  a.d = int(q.shape[3]);
  a.e = int(v.shape[3]);
  a.causal = c.attrs->i[0] == 1;
  a.scale = c.attrs->f[0];
  if (mask && mask->data) {
    a.mask = mask->data;
    a.mask_kind = mask->dtype == DType::boolean ? 1 : 2;
    for (int d = 0; d < 4; ++d) a.mask_step[d] = mask->strides[d];
  }
  if (lengths && lengths->data) a.lengths = lengths->ptr<const long long>();
  return a;
}

// The warps per block for which `numbers` per row fit into shared memory; 0: one warp's rows do not fit.
struct Block { unsigned warps, bytes; };
Block block_for(const Launcher& l, DType t, std::int64_t numbers) {
  const std::int64_t size = std::int64_t(size_bytes(stats_type(t))), tile = 32 * 65 * size;
  for (const std::int64_t room : {48 << 10, l.architecture() >= 80 ? 96 << 10 : 64 << 10})
    for (const unsigned warps : {8u, 4u, 2u, 1u}) {
      const std::int64_t bytes = tile + std::int64_t(warps) * 4 * (numbers + 33) * size;
      if (bytes <= room) return {warps, unsigned(bytes)};
    }
  return {0, 0};
}

void run(const Call& c, Launcher& l, const char* kernel, DType t, const Attention& a, std::int64_t pairs,
         std::int64_t length, std::int64_t numbers) {
  const Block block = block_for(l, t, numbers);
  if (!block.warps) return c.fail("attention: heads of %d and %d numbers are too large for a GPU's shared memory",
                                  a.d, a.e);
  const std::int64_t blocks = blocks_for(length, block.warps * 4) * pairs;
  if (blocks) launch(l, kernel, {unsigned(blocks)}, {32, block.warps}, block.bytes, a);
}

// Whether every row begins at a multiple of `pack` elements of `size` bytes.
bool packs_of(const Strided& m, int pack, std::size_t size) {
  return aligned(m.data, std::size_t(pack) * size) && m.batch % pack == 0 && m.head % pack == 0 && m.row % pack == 0;
}
// Whether attention_tensor.cu supports these heads and types. Tells the user why a half type is not supported.
bool for_tensor_cores(Launcher& l, DType t, const Attention& a, std::initializer_list<const Strided*> operands) {
  if (!is_half(t)) return false;
  bool lies_well = true;
  for (const Strided* m : operands) lies_well = lies_well && packs_of(*m, 8, 2);  // tiles are copied by 16 bytes
  const char* const why =
      l.architecture() < 80 ? "its kernels for tensor cores need an sm_80 or later"
      : a.d != a.e || (a.d != 64 && a.d != 128) ? "its kernels for tensor cores are for heads of 64 and 128 numbers"
      : !(a.scale > 0) ? "its kernels for tensor cores need a scale above 0"
      : (a.causal && a.t > a.s) || a.s == 0 ? "its kernels for tensor cores need a key for each query"
      : !lies_well ? "its kernels for tensor cores need rows that begin at multiples of 16 bytes"
                   : nullptr;
  if (why) l.declined("tensor cores", why);
  return !why;
}
// A block has in shared memory 64 rows of `own` matrices, two tiles of each of two other matrices, and two numbers for
// each row of those tiles.
using TensorNames = const char* [2][2][2];        // indices: masked, heads of 128, f16
void run_tensor(Launcher& l, const TensorNames& names, DType t, const Attention& a, std::int64_t pairs,
                std::int64_t length, int own, int tile) {
  const char* kernel = names[a.mask_kind || a.lengths][a.d == 128][t == DType::f16];
  const unsigned bytes = unsigned((64 * own + 4 * tile) * a.d * 2 + (own == 2 ? 4 * tile * 4 : 0));
  if (pairs && length) launch(l, kernel, {unsigned(blocks_for(length, 64) * pairs)}, {128}, bytes, a);
}
#define TENSOR_TYPES(name) {{name "_64_bf16", name "_64_f16"}, {name "_128_bf16", name "_128_f16"}}
#define TENSOR_NAMES(what) {TENSOR_TYPES("attention_tensor" what), TENSOR_TYPES("attention_tensor_masked" what)}
constexpr TensorNames tensor_forward = TENSOR_NAMES(""), tensor_grad_queries = TENSOR_NAMES("_grad_queries"),
                      tensor_grad_keys = TENSOR_NAMES("_grad_keys");

void forward(const Call& c, Launcher& l, const View* mask, const View* lengths) {
  const View& q = c.in[0];
  if (!fits(c, q, c.in[1])) return;
  Attention a = shape_of(c, q, c.in[1], c.in[2], mask, lengths);
  a.o = strided(c.out[0]);
  a.lse = c.out[1].data;
  if (for_tensor_cores(l, q.dtype, a, {&a.q, &a.k, &a.v, &a.o}))
    return run_tensor(l, tensor_forward, q.dtype, a, std::int64_t(a.batch) * a.heads, a.t, 1, 64);
  run(c, l, name_in(RILLE_NAMES("attention"), q.dtype), q.dtype, a, std::int64_t(a.batch) * a.heads, a.t, a.d + a.e);
}

// in: gradient of o, q, k, v, .., o, log-sum-exp
void backward(const Call& c, Launcher& l, const View* mask, const View* lengths, const View& o, const View& lse) {
  const View& q = c.in[1];
  if (!fits(c, q, c.in[2])) return;
  Attention a = shape_of(c, q, c.in[2], c.in[3], mask, lengths);
  a.go = strided(c.in[0]);
  a.o = strided(o);
  a.lse = lse.data;
  a.dq = strided(c.out[0]);
  a.dk = strided(c.out[1]);
  a.dv = strided(c.out[2]);
  const std::int64_t pairs = std::int64_t(a.batch) * a.heads, queries = pairs * a.t;
  a.delta = l.scratch(std::size_t(queries + 1) * size_bytes(stats_type(q.dtype)));
  if (!a.delta) return c.fail("attention: no memory for %lld sums\n"
                              "work on smaller tensors or batches, or free tensors", (long long)queries);
  const Grid block{32, 8};
  const std::size_t size = size_bytes(q.dtype);
  const int pack = pack_of(size);
  const bool packed = a.e % pack == 0 && packs_of(a.go, pack, size) && packs_of(a.o, pack, size);
  const unsigned lanes = power_above(packed ? a.e / pack : a.e, 32);
  if (queries)
    launch(l, name_in(RILLE_NAMES("attention_delta"), q.dtype),
           RowShape::rows_grid(l, blocks_for(queries, 32 / lanes), block), block, 0, a, int(lanes), int(packed));
  if (for_tensor_cores(l, q.dtype, a, {&a.q, &a.k, &a.v, &a.go, &a.dq, &a.dk, &a.dv})) {
    const int tile = a.d == 64 ? 64 : 32;
    run_tensor(l, tensor_grad_queries, q.dtype, a, pairs, a.t, 2, tile);
    return run_tensor(l, tensor_grad_keys, q.dtype, a, std::int64_t(a.batch) * a.groups, a.s, 2, tile);
  }
  run(c, l, name_in(RILLE_NAMES("attention_grad_queries"), q.dtype), q.dtype, a, pairs, a.t, 2 * a.d + a.e);
  run(c, l, name_in(RILLE_NAMES("attention_grad_keys"), q.dtype), q.dtype, a, std::int64_t(a.batch) * a.groups, a.s,
      2 * (a.d + a.e));
}

}  // namespace

void attention(const Call& c, Launcher& l, const Names&) { forward(c, l, nullptr, nullptr); }
void attention_grad(const Call& c, Launcher& l, const Names&) {
  backward(c, l, nullptr, nullptr, c.in[4], c.in[5]);
}
void attention_masked(const Call& c, Launcher& l, const Names&) { forward(c, l, &c.in[3], &c.in[4]); }
void attention_masked_grad(const Call& c, Launcher& l, const Names&) {
  backward(c, l, &c.in[4], &c.in[5], c.in[6], c.in[7]);
}

}  // namespace rille::kernels::cuda
