// The tensor operations, under PyTorch's names. Each call checks shapes and types at once (error invalid, naming the
// shapes of both operands), records the operation, and returns a lazy tensor; no value is computed yet. Gradients flow
// through every operation on floating types unless the comment says otherwise. Operands of different types are cast to
// the later type in bool < u8 < i8 < i32 < i64 < f16 < bf16 < f32 < f64, except u8 with i8, which gives i32, and f16
// with bf16, which gives f32. True division and floating functions turn integers into f32. A negative dimension counts
// from the last one. f16 and bf16 are computed in f32 and rounded once per operation; their statistics and losses are
// f32. f64 is meant for tests: f64 products are slow. Functions and gradient rules are in ops/, one file per family;
// docs/design/tensor.md says how to add an operation.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/compute/tensor/graph.hpp"
#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

// -- making tensors. Each result is new, contiguous memory and does not require grad.
Result<Tensor> zeros(Graph& g, const Dims& shape, DType dtype = DType::f32);
Result<Tensor> ones(Graph& g, const Dims& shape, DType dtype = DType::f32);
Result<Tensor> full(Graph& g, const Dims& shape, double value, DType dtype = DType::f32);
Result<Tensor> rand(Graph& g, const Dims& shape, DType dtype = DType::f32);   // uniform in [0, 1)
Result<Tensor> randn(Graph& g, const Dims& shape, DType dtype = DType::f32);  // normal distribution, mean 0, variance 1
Result<Tensor> randint(Graph& g, std::int64_t low, std::int64_t high, const Dims& shape, DType dtype = DType::i64);
Result<Tensor> randperm(Graph& g, std::int64_t n);  // the numbers 0 to n - 1 in random order, i64
// Evenly spaced numbers; the first is `start` and the last is `end`.
Result<Tensor> linspace(Graph& g, double start, double end, std::int64_t count, DType dtype = DType::f32);
Result<Tensor> eye(Graph& g, std::int64_t rows, std::int64_t columns, DType dtype = DType::f32);
Result<Tensor> arange(Graph& g, double start, double end, double step, DType dtype = DType::i64);
// Copies `bytes` bytes from `data`, row-major; `bytes` must be count * element size. Inside a compiled function the
// copied values are a constant.
Result<Tensor> from_bytes(Graph& g, const Dims& shape, DType dtype, const void* data, std::size_t bytes);
// A CPU tensor over memory that `keeper` keeps alive: row-major, aligned to its elements. Writes in place change that
// memory.
Result<Tensor> from_memory(Graph& g, const Dims& shape, DType dtype, void* data, std::shared_ptr<void> keeper);
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
// Rounds the quotient towards minus infinity, as Python's // and %. A read of an integer divided by zero fails.
Result<Tensor> floor_divide(const Tensor& a, const Tensor& b);
Result<Tensor> remainder(const Tensor& a, const Tensor& b);
Result<Tensor> lt(const Tensor& a, const Tensor& b);  // the six comparisons return bool and have no gradient
Result<Tensor> le(const Tensor& a, const Tensor& b);
Result<Tensor> gt(const Tensor& a, const Tensor& b);
Result<Tensor> ge(const Tensor& a, const Tensor& b);
Result<Tensor> eq(const Tensor& a, const Tensor& b);
Result<Tensor> ne(const Tensor& a, const Tensor& b);
// With the number b as the right operand; in the r... forms b is the left operand. A fractional b turns integers into
// f32.
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
Result<Tensor> gelu(const Tensor& a, bool exact = false);  // exact: with erf, as in BERT; else by tanh, as in GPT-2
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
Result<Tensor> sign(const Tensor& a);  // sign, floor, ceil, round and trunc have gradient 0
Result<Tensor> floor(const Tensor& a);
Result<Tensor> ceil(const Tensor& a);
Result<Tensor> round(const Tensor& a);  // a value halfway between two integers goes to the even one
Result<Tensor> trunc(const Tensor& a);
Result<Tensor> square(const Tensor& a);
Result<Tensor> reciprocal(const Tensor& a);
Result<Tensor> silu(const Tensor& a);  // x * sigmoid(x)
Result<Tensor> leaky_relu(const Tensor& a, double slope = 0.01);
Result<Tensor> elu(const Tensor& a, double alpha = 1);
Result<Tensor> softplus(const Tensor& a, double beta = 1);
Result<Tensor> hardswish(const Tensor& a);
Result<Tensor> hardsigmoid(const Tensor& a);
Result<Tensor> clamp(const Tensor& a, std::optional<double> low, std::optional<double> high);
Result<Tensor> isnan(const Tensor& a);  // isnan, isinf and isfinite return bool
Result<Tensor> isinf(const Tensor& a);
Result<Tensor> isfinite(const Tensor& a);
// The bitwise functions take integers and bool. The logical ones take any type, treat nonzero as true and return bool.
Result<Tensor> bitwise_and(const Tensor& a, const Tensor& b);
Result<Tensor> bitwise_or(const Tensor& a, const Tensor& b);
Result<Tensor> bitwise_xor(const Tensor& a, const Tensor& b);
Result<Tensor> bitwise_not(const Tensor& a);
Result<Tensor> logical_and(const Tensor& a, const Tensor& b);
Result<Tensor> logical_or(const Tensor& a, const Tensor& b);
Result<Tensor> logical_xor(const Tensor& a, const Tensor& b);
Result<Tensor> logical_not(const Tensor& a);
// The result type of an operation on a `dtype` tensor and the number: `dtype` if it can represent the number, otherwise
// i64 for a whole number and f32 for a fraction.
DType beside_number(DType dtype, double number);
Result<Tensor> where(const Tensor& condition, const Tensor& a, const Tensor& b);  // `condition` must be bool
Result<Tensor> masked_fill(const Tensor& a, const Tensor& mask, double value);    // writes value where mask is true
Result<Tensor> cast(const Tensor& a, DType dtype);                                // returns `a` if it has that type
// Zeroes elements with probability p and multiplies the rest by 1/(1-p). Returns `a` if training is false or p is 0.
Result<Tensor> dropout(const Tensor& a, double p, bool training = true);

// -- products. If autocast is set in the graph's modes, f32 operands of products and convolutions are cast to that type
// first; their gradients are cast back to f32.
Result<Tensor> autocast(const Tensor& t);             // returns `t` if no cast is needed
kernels::Attrs product_attrs(const Tensor& operand);  // includes the TF32 mode of the operand's graph
// [.., m, k] x [.., k, n] -> [.., m, n]. Leading dimensions broadcast; vectors behave as in PyTorch. A transposed view
// is read without a copy.
Result<Tensor> matmul(const Tensor& a, const Tensor& b);
// "ij,jk->ik": a sum of products with one letter per dimension; letters missing in the result are summed over. Without
// "->" the result has the letters that occur once, in alphabetical order. A letter occurs once per operand.
Result<Tensor> einsum(const std::string& equation, const std::vector<Tensor>& operands);
// x [.., in], weight [out, in], bias [out] or empty -> [.., out]. The product kernel also adds the bias.
Result<Tensor> linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
// q [.., h, t, d], k and v [.., h, s, d] -> [.., h, t, d]: softmax(q k^T * scale) v. causal: query i attends to the
// keys <= i + s - t. Strided views (of one fused projection) are read without a copy. The result lies in memory as
// [.., t, h, d], so that transposing it back and reshaping costs nothing. scale 0 means 1/sqrt(d).
Result<Tensor> scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
                                            double scale = 0);

// Attention with masks, lengths, and groups of query heads that share keys: k [b, g, s, d] and v [b, g, s, e], where g
// divides h. A query with no visible key returns zeros. The mask gets no gradient.
struct Attention {
  bool causal = false;
  double scale = 0;
  Tensor mask;     // must broadcast to [b, h, t, s]. bool: true means visible. q's type: added to the scores
  Tensor lengths;  // [b], integers: how many keys each batch entry has
};
Result<Tensor> scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Attention& how);
// Rotates pairs of elements of x [.., t, d] by the angles of position t; cos and sin are [t, d/2]. The pairs are
// (i, i + d/2), or (2i, 2i + 1) if interleaved.
Result<Tensor> rope(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved = false);
struct Angles {
  Tensor cos, sin;
};
Result<Angles> rope_angles(Graph& g, std::int64_t positions, std::int64_t width, double base = 10000,
                           DType dtype = DType::f32);

// -- images [n, c, h, w] and sequences [n, c, l]. A pair is (height, width); conv1d uses only its second number.
using Pair2 = std::array<std::int64_t, 2>;
struct Convolution {
  Pair2 stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
};
// weight is [o, c/groups, kh, kw]; bias is [o] or empty.
Result<Tensor> conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Convolution& how = {});
Result<Tensor> conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Convolution& how = {});
// Transposed convolution, which is the input gradient of conv2d: weight [c, o/groups, kh, kw], bias [o] or empty. The
// output has the smallest size that conv2d would map to x's size, plus `more`; `more` must be below the stride or below
// the dilation.
Result<Tensor> conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                const Convolution& how = {}, const Pair2& more = {0, 0});
// Resizes images: takes the nearest pixel, or interpolates linearly between the two nearest per axis. `step` is the
// distance between output pixels, in pixels of x; 0: computed from the sizes. align_corners aligns the centres of the
// corner pixels; otherwise their outer edges are aligned.
struct Interpolation {
  Pair2 size;
  bool linear = false, align_corners = false;
  std::array<double, 2> step{0, 0};
};
Result<Tensor> interpolate(const Tensor& x, const Interpolation& how);
// ceil: adds one more window that extends past the end of the input.
struct Pooling {
  Pair2 window, stride, padding{0, 0}, dilation{1, 1};
  bool ceil = false;
};
Result<Tensor> max_pool2d(const Tensor& x, const Pooling& how);
Result<Tensor> avg_pool2d(const Tensor& x, const Pooling& how, bool count_include_pad = true);  // ignores dilation
Result<Tensor> adaptive_avg_pool2d(const Tensor& x, std::int64_t height, std::int64_t width);
Result<Tensor> adaptive_max_pool2d(const Tensor& x, std::int64_t height, std::int64_t width);
// Pooling of sequences [n, c, l]; uses the second number of each pair.
Result<Tensor> max_pool1d(const Tensor& x, const Pooling& how);
Result<Tensor> avg_pool1d(const Tensor& x, const Pooling& how, bool count_include_pad = true);
Result<Tensor> adaptive_avg_pool1d(const Tensor& x, std::int64_t length);
Result<Tensor> adaptive_max_pool1d(const Tensor& x, std::int64_t length);

// -- shapes. The result is a view if the strides allow it, otherwise a copy.
Result<Tensor> reshape(const Tensor& a, const Dims& shape);  // one size may be -1, computed from the others
Result<Tensor> view(const Tensor& a, const Dims& shape);     // error invalid if reshape would have to copy
Result<Tensor> permute(const Tensor& a, const Dims& order);
Result<Tensor> transpose(const Tensor& a, int dim0, int dim1);
Result<Tensor> narrow(const Tensor& a, int dim, std::int64_t start, std::int64_t length);
// Every step-th element of a dimension, from `start` to before `end`. invalid: a step below 1, a range out of bounds.
Result<Tensor> slice(const Tensor& a, int dim, std::int64_t start, std::int64_t end, std::int64_t step);
Result<Tensor> select(const Tensor& a, int dim, std::int64_t index);  // removes dimension `dim`
Result<Tensor> expand(const Tensor& a, const Dims& shape);            // a size of -1 keeps a's size
Result<Tensor> squeeze(const Tensor& a, int dim);                     // returns `a` if the size of `dim` is not 1
Result<Tensor> unsqueeze(const Tensor& a, int dim);
Result<Tensor> contiguous(const Tensor& a);
Result<Tensor> clone(const Tensor& a);  // always copies to new memory
Result<Tensor> cat(const std::vector<Tensor>& parts, int dim);
Result<std::vector<Tensor>> chunk(const Tensor& a, int pieces, int dim);  // views of equal size, except the last

Result<std::vector<Tensor>> split(const Tensor& a, const std::vector<std::int64_t>& sizes, int dim);  // returns views
Result<Tensor> stack(const std::vector<Tensor>& parts, int dim);  // joins the parts along a new dimension
Result<Tensor> flatten(const Tensor& a, int first = 0, int last = -1);
Result<Tensor> tile(const Tensor& a, const Dims& times);  // repeats the whole tensor, as PyTorch's repeat
Result<Tensor> repeat_interleave(const Tensor& a, std::int64_t times, int dim);  // repeats each element in turn
Result<Tensor> flip(const Tensor& a, const std::vector<int>& dims);
Result<Tensor> roll(const Tensor& a, std::int64_t shift, int dim);
// edges: padding before and after the last dimension, then before and after the second last, and so on. The padding is
// filled with `value`.
Result<Tensor> pad(const Tensor& a, const std::vector<std::int64_t>& edges, double value = 0);
Result<Tensor> tril(const Tensor& a, std::int64_t diagonal = 0);  // the lower triangle of each matrix; zero above
Result<Tensor> triu(const Tensor& a, std::int64_t diagonal = 0);

// -- indexing. Indices are integers of any type and count from 0; an index out of range fails when the result is read.
// out[.., j, ..] = a[.., index[.., j, ..], ..] along `dim`. index has as many dimensions as `a` and, in the dimensions
// other than `dim`, is at most as large as `a`.
Result<Tensor> gather(const Tensor& a, int dim, const Tensor& index);
// A copy of `a` in which src (of index's shape) replaces the elements that gather would read or, with `add`, is added.
Result<Tensor> scatter(const Tensor& a, int dim, const Tensor& index, const Tensor& src, bool add = false);
Result<Tensor> index_select(const Tensor& a, int dim, const Tensor& index);  // index has one dimension
// A copy of `a` in which src, of the shape that index_select returns, replaces the elements that index_select would
// read or, with `add`, is added to them.
Result<Tensor> index_put(const Tensor& a, int dim, const Tensor& index, const Tensor& src, bool add);
Result<Tensor> one_hot(const Tensor& ids, std::int64_t classes);  // returns i64 [.., classes]
// Values and their indices (i64) along `dim`. The sort is stable; a NaN is larger than any number.
struct Sorted {
  Tensor values, places;
};
Result<Sorted> sort(const Tensor& a, int dim, bool descending = false);
Result<Sorted> topk(const Tensor& a, std::int64_t k, int dim, bool largest = true);

// -- reductions. Without `dims` they reduce over all dimensions and return a 0-d tensor. Sums of integers are i64.
Result<Tensor> sum(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> mean(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> max(const Tensor& a, const std::vector<int>& dims = {},
                   bool keepdim = false);  // equal maxima share the gradient equally
Result<Tensor> min(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> argmax(const Tensor& a, int dim, bool keepdim = false);  // i64, from 0; of equal maxima the first
Result<Tensor> argmin(const Tensor& a, int dim, bool keepdim = false);
Result<Tensor> prod(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> any(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);  // returns bool
Result<Tensor> all(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
// Divides the squared deviations by count - correction. 1 estimates the variance of a population from a sample; 0 gives
// the variance of the given numbers.
Result<Tensor> var(const Tensor& a, const std::vector<int>& dims = {}, double correction = 1, bool keepdim = false);
Result<Tensor> std_dev(const Tensor& a, const std::vector<int>& dims = {}, double correction = 1, bool keepdim = false);
Result<Tensor> norm(const Tensor& a, double p = 2, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> logsumexp(const Tensor& a, const std::vector<int>& dims = {}, bool keepdim = false);
Result<Tensor> cumsum(const Tensor& a, int dim);
Result<Tensor> softmax(const Tensor& a, int dim);
Result<Tensor> log_softmax(const Tensor& a, int dim);

// -- layers and losses of networks
// Normalises over the last dimension; weight and bias have the size of that dimension, or are empty.
Result<Tensor> layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
Result<Tensor> rms_norm(const Tensor& x, const Tensor& weight, double eps = 1e-6);
// Normalises each channel of [n, c, ..]. In training it uses the statistics of this batch, and moves running_mean and
// running_var (f32 if x is a half type) towards them in place; otherwise it uses the running statistics. Each of the
// four tensors is [c] or empty.
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
// logits [.., c], labels [..] (integers from 0) -> the mean loss over the labels other than ignore_index, 0-d.
// Label smoothing s: the target is (1 - s) times the label plus s spread evenly over all classes.
Result<Tensor> cross_entropy(const Tensor& logits, const Tensor& labels, std::int64_t ignore_index = -100,
                             double label_smoothing = 0);
enum class Reduce { mean, sum, none };
// weight [c]: how much a label of each class counts; the mean divides by the sum of the labels' weights. Reduce::none
// returns one loss per label, 0 for ignored labels.
struct LabelLoss {
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  Reduce reduce = Reduce::mean;
  Tensor weight;
};
Result<Tensor> cross_entropy(const Tensor& logits, const Tensor& labels, const LabelLoss& how);
// Expects log-probabilities, as log_softmax returns them.
Result<Tensor> nll_loss(const Tensor& log_probabilities, const Tensor& labels, const LabelLoss& how = {});
Result<Tensor> mse_loss(const Tensor& a, const Tensor& target, Reduce how = Reduce::mean);
Result<Tensor> l1_loss(const Tensor& a, const Tensor& target, Reduce how = Reduce::mean);  // |a - target|
// d = |a - target|: d * d / 2 up to d = 1, and d - 1/2 beyond (Girshick 2015).
Result<Tensor> smooth_l1_loss(const Tensor& a, const Tensor& target, Reduce how = Reduce::mean);
Result<Tensor> binary_cross_entropy_with_logits(const Tensor& a, const Tensor& target, Reduce how = Reduce::mean);
// probabilities [.., c], which need not sum to one -> one drawn index per row, i64 [..]. Has no gradient.
Result<Tensor> multinomial(const Tensor& probabilities);
Result<Tensor> multinomial(const Tensor& probabilities, std::int64_t draws);  // draws with replacement -> [.., draws]

// -- Fourier transforms of the last dimension; fft2 and ifft2: of the last two. A complex tensor has a last dimension
// of 2: real part, imaginary part. A real input of n numbers has half a spectrum: n/2 + 1 bins. irfft takes the output
// size n (0: 2 * (bins - 1)) and treats the first and the last bin as real. Norm says which transform divides by the
// number of elements. backward: the inverse; ortho: both, by the square root; forward: the forward transform.
enum class Norm { backward, ortho, forward };
Result<Tensor> fft(const Tensor& a, Norm norm = Norm::backward);  // a is [.., n, 2]
Result<Tensor> ifft(const Tensor& a, Norm norm = Norm::backward);
Result<Tensor> fft2(const Tensor& a, Norm norm = Norm::backward);
Result<Tensor> ifft2(const Tensor& a, Norm norm = Norm::backward);
// [.., n] -> [.., n/2 + 1, 2]. n > 0: first truncates or zero-pads the input to n numbers; 0: keeps its size.
Result<Tensor> rfft(const Tensor& a, std::int64_t n = 0, Norm norm = Norm::backward);
Result<Tensor> irfft(const Tensor& a, std::int64_t n = 0, Norm norm = Norm::backward);
Result<Tensor> rfft2(const Tensor& a, Norm norm = Norm::backward);
Result<Tensor> irfft2(const Tensor& a, std::int64_t n = 0, Norm norm = Norm::backward);

// -- in place: writes a's memory after every earlier recorded reader has run; the result is in `a`.
// Error state: gradients are recorded now, and `a` is a leaf that requires grad or the result of a recorded operation.
Result<void> add_(Tensor& a, const Tensor& b, double alpha = 1);  // a += alpha * b
Result<void> sub_(Tensor& a, const Tensor& b, double alpha = 1);
Result<void> mul_(Tensor& a, const Tensor& b);
Result<void> mul_(Tensor& a, double b);
Result<void> div_(Tensor& a, const Tensor& b);  // div_ works on floating types only
Result<void> div_(Tensor& a, double b);
Result<void> copy_(Tensor& a, const Tensor& b);  // casts b to a's type and broadcasts it to a's shape
Result<void> fill_(Tensor& a, double value);
Result<void> zero_(Tensor& a);

}  // namespace rille::tensor
