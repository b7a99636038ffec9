// The operations, under PyTorch's names. Each checks shapes and types at once (kind invalid, naming both
// operands' shapes), records itself, and returns a lazy tensor; nothing is computed here. Gradients flow
// through every operation on floating types unless said otherwise. Operands of different types meet at the
// later one in bool < u8 < i8 < i32 < i64 < f16 < bf16 < f32 < f64 (u8 and i8 at i32, f16 and bf16 at f32; then
// f32 for true division and the floating functions of integers). Dimensions may be negative. f16 and bf16 are
// computed in f32 and rounded once per operation; their statistics and losses are f32. f64 is meant for tests: its
// products are slow. Functions and gradient rules are in ops/, one file per family; docs/design/tensor.md says how to
// add one.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/compute/tensor/graph.hpp"
#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

// -- making tensors. All are fresh, contiguous and without gradient.
Result<Tensor> zeros(Graph& g, const Dims& shape, DType dtype = DType::f32);
Result<Tensor> ones(Graph& g, const Dims& shape, DType dtype = DType::f32);
Result<Tensor> full(Graph& g, const Dims& shape, double value, DType dtype = DType::f32);
Result<Tensor> rand(Graph& g, const Dims& shape, DType dtype = DType::f32);   // uniform in [0, 1)
Result<Tensor> randn(Graph& g, const Dims& shape, DType dtype = DType::f32);  // normal(0, 1)
Result<Tensor> randint(Graph& g, std::int64_t low, std::int64_t high, const Dims& shape, DType dtype = DType::i64);
Result<Tensor> randperm(Graph& g, std::int64_t n);  // 0 to n - 1 in a random order, i64
Result<Tensor> linspace(Graph& g, double start, double end, std::int64_t count, DType dtype = DType::f32);  // with end
Result<Tensor> eye(Graph& g, std::int64_t rows, std::int64_t columns, DType dtype = DType::f32);
Result<Tensor> arange(Graph& g, double start, double end, double step, DType dtype = DType::i64);
// Copies `bytes` (row-major, exactly count * element size). Inside a compiled function it is a constant.
Result<Tensor> from_bytes(Graph& g, const Dims& shape, DType dtype, const void* data, std::size_t bytes);
Result<Tensor> from_numbers(Graph& g, const Dims& shape, DType dtype, const std::vector<double>& numbers);

// -- element-wise. Shapes broadcast as in PyTorch.
Result<Tensor> add(const Tensor& a, const Tensor& b);
Result<Tensor> sub(const Tensor& a, const Tensor& b);
Result<Tensor> mul(const Tensor& a, const Tensor& b);
Result<Tensor> div(const Tensor& a, const Tensor& b);  // true division: integers give f32
Result<Tensor> pow(const Tensor& a, const Tensor& b);
Result<Tensor> maximum(const Tensor& a, const Tensor& b);
Result<Tensor> minimum(const Tensor& a, const Tensor& b);
Result<Tensor> atan2(const Tensor& a, const Tensor& b);
// Rounds towards minus infinity, as Python's // and %. An integer division by zero fails at the read.
Result<Tensor> floor_divide(const Tensor& a, const Tensor& b);
Result<Tensor> remainder(const Tensor& a, const Tensor& b);
Result<Tensor> lt(const Tensor& a, const Tensor& b);  // comparisons give bool and no gradient
Result<Tensor> le(const Tensor& a, const Tensor& b);
Result<Tensor> gt(const Tensor& a, const Tensor& b);
Result<Tensor> ge(const Tensor& a, const Tensor& b);
Result<Tensor> eq(const Tensor& a, const Tensor& b);
Result<Tensor> ne(const Tensor& a, const Tensor& b);
// With a number on the right; the reversed forms have it on the left. A fractional number makes integers f32.
Result<Tensor> add(const Tensor& a, double b);
Result<Tensor> sub(const Tensor& a, double b);
Result<Tensor> rsub(const Tensor& a, double b);  // b - a
Result<Tensor> mul(const Tensor& a, double b);
Result<Tensor> div(const Tensor& a, double b);
Result<Tensor> rdiv(const Tensor& a, double b);  // b / a
Result<Tensor> pow(const Tensor& a, double b);
Result<Tensor> rpow(const Tensor& a, double b);  // b ^ a
Result<Tensor> maximum(const Tensor& a, double b);
Result<Tensor> minimum(const Tensor& a, double b);
Result<Tensor> atan2(const Tensor& a, double b);
Result<Tensor> floor_divide(const Tensor& a, double b);
Result<Tensor> rfloor_divide(const Tensor& a, double b);  // b // a
Result<Tensor> remainder(const Tensor& a, double b);
Result<Tensor> rremainder(const Tensor& a, double b);  // b % a
Result<Tensor> lt(const Tensor& a, double b);
Result<Tensor> le(const Tensor& a, double b);
Result<Tensor> gt(const Tensor& a, double b);
Result<Tensor> ge(const Tensor& a, double b);
Result<Tensor> eq(const Tensor& a, double b);
Result<Tensor> ne(const Tensor& a, double b);
Result<Tensor> neg(const Tensor& a);
Result<Tensor> abs(const Tensor& a);
Result<Tensor> exp(const Tensor& a);
Result<Tensor> log(const Tensor& a);
Result<Tensor> exp2(const Tensor& a);
Result<Tensor> log2(const Tensor& a);
Result<Tensor> log10(const Tensor& a);
Result<Tensor> sqrt(const Tensor& a);
Result<Tensor> rsqrt(const Tensor& a);
Result<Tensor> tanh(const Tensor& a);
Result<Tensor> sigmoid(const Tensor& a);
Result<Tensor> relu(const Tensor& a);
Result<Tensor> gelu(const Tensor& a, bool exact = false);  // the tanh form, as in GPT-2; exact: with erf, as in BERT
Result<Tensor> expm1(const Tensor& a);
Result<Tensor> log1p(const Tensor& a);
Result<Tensor> sin(const Tensor& a);
Result<Tensor> cos(const Tensor& a);
Result<Tensor> tan(const Tensor& a);
Result<Tensor> asin(const Tensor& a);
Result<Tensor> acos(const Tensor& a);
Result<Tensor> atan(const Tensor& a);
Result<Tensor> sinh(const Tensor& a);
Result<Tensor> cosh(const Tensor& a);
Result<Tensor> erf(const Tensor& a);
Result<Tensor> sign(const Tensor& a);  // these five have gradient 0
Result<Tensor> floor(const Tensor& a);
Result<Tensor> ceil(const Tensor& a);
Result<Tensor> round(const Tensor& a);  // halves to the even number
Result<Tensor> trunc(const Tensor& a);
Result<Tensor> square(const Tensor& a);
Result<Tensor> reciprocal(const Tensor& a);
Result<Tensor> silu(const Tensor& a);  // x sigmoid(x)
Result<Tensor> leaky_relu(const Tensor& a, double slope = 0.01);
Result<Tensor> elu(const Tensor& a, double alpha = 1);
Result<Tensor> softplus(const Tensor& a, double beta = 1);
Result<Tensor> hardswish(const Tensor& a);
Result<Tensor> hardsigmoid(const Tensor& a);
Result<Tensor> clamp(const Tensor& a, std::optional<double> low, std::optional<double> high);
Result<Tensor> isnan(const Tensor& a);  // bool
Result<Tensor> isinf(const Tensor& a);
Result<Tensor> isfinite(const Tensor& a);
// Bitwise: whole numbers and bool. Logical: any type; nonzero is true, the result is bool.
Result<Tensor> bitwise_and(const Tensor& a, const Tensor& b);
Result<Tensor> bitwise_or(const Tensor& a, const Tensor& b);
Result<Tensor> bitwise_xor(const Tensor& a, const Tensor& b);
Result<Tensor> bitwise_not(const Tensor& a);
Result<Tensor> logical_and(const Tensor& a, const Tensor& b);
Result<Tensor> logical_or(const Tensor& a, const Tensor& b);
Result<Tensor> logical_xor(const Tensor& a, const Tensor& b);
Result<Tensor> logical_not(const Tensor& a);
// The result type of a `dtype` tensor and a number: `dtype` if it can hold the number, else i64, or f32 for fractions.
DType beside_number(DType dtype, double number);
Result<Tensor> where(const Tensor& condition, const Tensor& a, const Tensor& b);  // condition is bool
Result<Tensor> masked_fill(const Tensor& a, const Tensor& mask, double value);    // value where mask is true
Result<Tensor> cast(const Tensor& a, DType dtype);                                // the same handle if it has that type
// Zeroes each element with probability p and scales the rest by 1/(1-p). training = false, or p = 0: `a` itself.
Result<Tensor> dropout(const Tensor& a, double p, bool training = true);

// -- products. If the graph's autocast is set, f32 operands of products and convolutions are cast to it first; their
// gradients are cast back to f32.
Result<Tensor> autocast(const Tensor& t);             // the handle itself if no cast is needed
kernels::Attrs product_attrs(const Tensor& operand);  // includes the graph's TF32 mode
// [.., m, k] x [.., k, n], leading dimensions broadcast; vectors as in PyTorch. Transposed views cost no copy.
Result<Tensor> matmul(const Tensor& a, const Tensor& b);
// "ij,jk->ik": a sum of products with one letter per dimension; letters missing in the result are summed over. Without
// "->" the result has the letters that occur once, in alphabetical order. A letter occurs once per operand.
Result<Tensor> einsum(const std::string& equation, const std::vector<Tensor>& operands);
// x [.., in], weight [out, in], bias [out] or empty -> [.., out]; the bias is added inside the product.
Result<Tensor> linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
// q [.., h, t, d], k and v [.., h, s, d] -> [.., h, t, d]; softmax(q k^T * scale) v. causal: query i sees
// keys <= i + s - t. Strided views (of one fused projection) are read in place; the result is laid out [..,
// t, h, d] so that transposing back and reshaping costs nothing. scale 0 means 1/sqrt(d).
Result<Tensor> scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
                                            double scale = 0);

// The same with masks, lengths, and groups of query heads that share keys: k [b, g, s, d] and v [b, g, s, e],
// g a divisor of h. A query with no visible key returns zeros. Masks have no gradient.
struct Attention {
  bool causal = false;
  double scale = 0;
  Tensor mask;     // broadcast to [b, h, t, s]: bool, true: visible; or q's type, added to the scores
  Tensor lengths;  // [b], whole numbers: the number of keys of each batch entry
};
Result<Tensor> scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Attention& how);
// Rotates pairs of x [.., t, d] by the angles of their position (cos, sin: [t, d/2]): (i, i + d/2), or (2i, 2i + 1).
Result<Tensor> rope(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved = false);
struct Angles {
  Tensor cos, sin;
};
Result<Angles> rope_angles(Graph& g, std::int64_t positions, std::int64_t width, double base = 10000,
                           DType dtype = DType::f32);

// -- images and sequences: [n, c, h, w] and [n, c, l]. Pairs are (height, width); conv1d uses the second.
using Pair2 = std::array<std::int64_t, 2>;
struct Convolution {
  Pair2 stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
};
// weight [o, c/groups, kh, kw], bias [o] or empty.
Result<Tensor> conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Convolution& how = {});
Result<Tensor> conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Convolution& how = {});
// Transposed convolution, conv2d's gradient as an operation: weight [c, o/groups, kh, kw], bias [o] or empty. The
// output is the smallest that conv2d would map to x's size, plus `more`, which must be below the stride or the
// dilation.
Result<Tensor> conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                const Convolution& how = {}, const Pair2& more = {0, 0});
// Resizes images: by the nearest pixel, or linearly between the two nearest per axis. `step`: distance between output
// pixels, in pixels of x; 0: from the sizes. align_corners: aligns the centres of the corner pixels, else the edges.
struct Interpolation {
  Pair2 size;
  bool linear = false, align_corners = false;
  std::array<double, 2> step{0, 0};
};
Result<Tensor> interpolate(const Tensor& x, const Interpolation& how);
// ceil: adds a last window that extends past the end.
struct Pooling {
  Pair2 window, stride, padding{0, 0}, dilation{1, 1};
  bool ceil = false;
};
Result<Tensor> max_pool2d(const Tensor& x, const Pooling& how);
Result<Tensor> avg_pool2d(const Tensor& x, const Pooling& how, bool count_include_pad = true);  // dilation is ignored
Result<Tensor> adaptive_avg_pool2d(const Tensor& x, std::int64_t height, std::int64_t width);
Result<Tensor> adaptive_max_pool2d(const Tensor& x, std::int64_t height, std::int64_t width);
// For [n, c, l]; uses the second number of each pair.
Result<Tensor> max_pool1d(const Tensor& x, const Pooling& how);
Result<Tensor> avg_pool1d(const Tensor& x, const Pooling& how, bool count_include_pad = true);
Result<Tensor> adaptive_avg_pool1d(const Tensor& x, std::int64_t length);
Result<Tensor> adaptive_max_pool1d(const Tensor& x, std::int64_t length);

// -- shapes: views if the strides allow it
Result<Tensor> reshape(const Tensor& a, const Dims& shape);  // one size may be -1; copies only if it must
Result<Tensor> view(const Tensor& a, const Dims& shape);     // invalid if reshape would copy
Result<Tensor> permute(const Tensor& a, const Dims& order);
Result<Tensor> transpose(const Tensor& a, int dim0, int dim1);
Result<Tensor> narrow(const Tensor& a, int dim, std::int64_t start, std::int64_t length);
// Every step-th element of a dimension, from `start` to before `end`. invalid: a step below 1, a range out of bounds.
Result<Tensor> slice(const Tensor& a, int dim, std::int64_t start, std::int64_t end, std::int64_t step);
Result<Tensor> select(const Tensor& a, int dim, std::int64_t index);  // removes the dimension
Result<Tensor> expand(const Tensor& a, const Dims& shape);            // -1 keeps a size
Result<Tensor> squeeze(const Tensor& a, int dim);                     // the handle itself if that size is not 1
Result<Tensor> unsqueeze(const Tensor& a, int dim);
Result<Tensor> contiguous(const Tensor& a);
Result<Tensor> clone(const Tensor& a);  // always fresh memory
Result<Tensor> cat(const std::vector<Tensor>& parts, int dim);
Result<std::vector<Tensor>> chunk(const Tensor& a, int pieces, int dim);  // equal views (the last may be smaller)

Result<std::vector<Tensor>> split(const Tensor& a, const std::vector<std::int64_t>& sizes, int dim);  // views
Result<Tensor> stack(const std::vector<Tensor>& parts, int dim);  // along a new dimension
Result<Tensor> flatten(const Tensor& a, int first = 0, int last = -1);
Result<Tensor> tile(const Tensor& a, const Dims& times);  // repeats the whole tensor, as PyTorch's repeat
Result<Tensor> repeat_interleave(const Tensor& a, std::int64_t times, int dim);  // repeats each element
Result<Tensor> flip(const Tensor& a, const std::vector<int>& dims);
Result<Tensor> roll(const Tensor& a, std::int64_t shift, int dim);
// edges: widths before and after the last dimension, then the one before it, ...; filled with `value`.
Result<Tensor> pad(const Tensor& a, const std::vector<std::int64_t>& edges, double value = 0);
Result<Tensor> tril(const Tensor& a, std::int64_t diagonal = 0);  // matrices; the rest is zero
Result<Tensor> triu(const Tensor& a, std::int64_t diagonal = 0);

// -- indexing (indices are whole numbers of any type, from 0; one out of range fails at the read)
// out[.., j, ..] = a[.., index[.., j, ..], ..] along `dim`; index has a's rank and, in the other dimensions, at most
// a's sizes.
Result<Tensor> gather(const Tensor& a, int dim, const Tensor& index);
// Writes src (of index's shape) to the places that gather would read; `add`: adds it to their values.
Result<Tensor> scatter(const Tensor& a, int dim, const Tensor& index, const Tensor& src, bool add = false);
Result<Tensor> index_select(const Tensor& a, int dim, const Tensor& index);  // index is 1-d
// The inverse of index_select: writes src, of the shape that index_select returns, to those places, or adds it.
Result<Tensor> index_put(const Tensor& a, int dim, const Tensor& index, const Tensor& src, bool add);
Result<Tensor> one_hot(const Tensor& ids, std::int64_t classes);  // i64 [.., classes]
// Values and their indices (i64) along `dim`. The sort is stable; a NaN is larger than any number.
struct Sorted {
  Tensor values, places;
};
Result<Sorted> sort(const Tensor& a, int dim, bool descending = false);
Result<Sorted> topk(const Tensor& a, std::int64_t k, int dim, bool largest = true);

// -- reductions. No dims: over everything, giving a 0-d tensor. Sums of integers are i64.
Result<Tensor> sum(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> mean(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> max(const Tensor& a, const std::vector<int>& dims = {},
                   bool keepdim = false);  // gradient shared by ties
Result<Tensor> min(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> argmax(const Tensor& a, int dim, bool keepdim = false);  // i64, counting from 0; the first of ties
Result<Tensor> argmin(const Tensor& a, int dim, bool keepdim = false);
Result<Tensor> prod(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> any(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);  // bool
Result<Tensor> all(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
// Divides by count - correction: 1 estimates the variance from a sample, 0 gives the variance of these numbers.
Result<Tensor> var(const Tensor& a, const std::vector<int>& dims = {}, double correction = 1, bool keepdim = false);
Result<Tensor> std_dev(const Tensor& a, const std::vector<int>& dims = {}, double correction = 1, bool keepdim = false);
Result<Tensor> norm(const Tensor& a, double p = 2, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> logsumexp(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> cumsum(const Tensor& a, int dim);
Result<Tensor> softmax(const Tensor& a, int dim);
Result<Tensor> log_softmax(const Tensor& a, int dim);

// -- what networks need
// Over the last dimension; weight and bias have its size, or are empty.
Result<Tensor> layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
Result<Tensor> rms_norm(const Tensor& x, const Tensor& weight, double eps = 1e-6);
// Over the channels of [n, c, ..]. Training uses the statistics of this batch and moves the running ones (f32 for half
// types) towards them in place; otherwise the running ones are used. Each vector is [c], or empty.
struct BatchNorm {
  Tensor weight, bias, running_mean, running_var;
  bool training = true;
  double momentum = 0.1, eps = 1e-5;
};
Result<Tensor> batch_norm(const Tensor& x, const BatchNorm& how);
Result<Tensor> group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight = {}, const Tensor& bias = {},
                          double eps = 1e-5);
// weight [n, c], ids of any shape (integers from 0) -> ids.shape + [c].
Result<Tensor> embedding(const Tensor& weight, const Tensor& ids);
// logits [.., c], labels [..] (whole numbers, from 0) -> the mean over labels other than ignore_index, 0-d.
// Label smoothing s: the target is (1 - s) times the label plus s spread evenly over all classes.
Result<Tensor> cross_entropy(const Tensor& logits, const Tensor& labels, std::int64_t ignore_index = -100,
                             double label_smoothing = 0);
enum class Reduce { mean, sum, none };
// weight [c]: the weight of a label of each class; a mean is divided by the sum of the weights. `none` returns [..],
// with 0 for ignored labels.
struct LabelLoss {
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  Reduce reduce = Reduce::mean;
  Tensor weight;
};
Result<Tensor> cross_entropy(const Tensor& logits, const Tensor& labels, const LabelLoss& how);
// Takes log-probabilities, as log_softmax returns them.
Result<Tensor> nll_loss(const Tensor& log_probabilities, const Tensor& labels, const LabelLoss& how = {});
Result<Tensor> mse_loss(const Tensor& a, const Tensor& target, Reduce how = Reduce::mean);
Result<Tensor> l1_loss(const Tensor& a, const Tensor& target, Reduce how = Reduce::mean);  // |a - target|
// Half the square up to a distance of 1, beyond it the distance less a half (Girshick 2015).
Result<Tensor> smooth_l1_loss(const Tensor& a, const Tensor& target, Reduce how = Reduce::mean);
Result<Tensor> binary_cross_entropy_with_logits(const Tensor& a, const Tensor& target, Reduce how = Reduce::mean);
// probabilities [.., c] (need not sum to one) -> one draw per row, i64 [..]. No gradient.
Result<Tensor> multinomial(const Tensor& probabilities);
Result<Tensor> multinomial(const Tensor& probabilities, std::int64_t draws);  // with replacement: [.., draws]

// -- Fourier transforms of the last dimension, or (2) the last two. Complex numbers are a last dimension of 2: real and
// imaginary part. The inverses are divided by the number of elements. For a real input half the spectrum is kept:
// n/2 + 1 bins; the inverse takes the size n (0: 2 bins - 2) and treats the ends of the spectrum as real.
// Norm: the direction that divides by that number: the inverse (as above), both by its root, or forward.
enum class Norm { backward, ortho, forward };
Result<Tensor> fft(const Tensor& a, Norm norm = Norm::backward);  // [.., n, 2]
Result<Tensor> ifft(const Tensor& a, Norm norm = Norm::backward);
Result<Tensor> fft2(const Tensor& a, Norm norm = Norm::backward);
Result<Tensor> ifft2(const Tensor& a, Norm norm = Norm::backward);
// [.., n] -> [.., n/2 + 1, 2]; n > 0: truncates or zero-pads the input to n numbers
Result<Tensor> rfft(const Tensor& a, std::int64_t n = 0, Norm norm = Norm::backward);
Result<Tensor> irfft(const Tensor& a, std::int64_t n = 0, Norm norm = Norm::backward);
Result<Tensor> rfft2(const Tensor& a, Norm norm = Norm::backward);
Result<Tensor> irfft2(const Tensor& a, std::int64_t n = 0, Norm norm = Norm::backward);

// -- in place: writes `a`'s memory after every earlier reader; `a` is the result.
// state: `a` is a leaf that requires grad, or the result of a recorded operation, while gradients are recorded.
Result<void> add_(Tensor& a, const Tensor& b, double alpha = 1);  // a += alpha * b
Result<void> sub_(Tensor& a, const Tensor& b, double alpha = 1);
Result<void> mul_(Tensor& a, const Tensor& b);
Result<void> mul_(Tensor& a, double b);
Result<void> div_(Tensor& a, const Tensor& b);  // floating types only, like the next
Result<void> div_(Tensor& a, double b);
Result<void> copy_(Tensor& a, const Tensor& b);  // casts and broadcasts
Result<void> fill_(Tensor& a, double value);
Result<void> zero_(Tensor& a);

}  // namespace rille::tensor
