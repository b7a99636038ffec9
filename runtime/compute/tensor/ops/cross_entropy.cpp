// Classification losses: cross entropy and negative log likelihood.
#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

Result<Tensor> cross_entropy(const Tensor& logits, const Tensor& labels, std::int64_t ignore_index,
                             double label_smoothing) {
  RILLE_CHECK(need_float_beside("cross_entropy", logits, labels));
  RILLE_CHECK(need_ids("cross_entropy", "labels", labels));
  Dims rows = logits.shape();
  rows.n = std::max(0, rows.n - 1);
  if (logits.rank() == 0 || !(rows == labels.shape()) || logits.size(-1) == 0) {
    return bad(fmt::format("cross_entropy: logits {} with labels {}: expected [.., c] with [..]",
                           to_string(logits.shape()), to_string(labels.shape())));
  }
  RILLE_TRY(const auto x, contiguous(logits));
  RILLE_TRY(const auto y, contiguous(labels));
  RILLE_CHECK(need_label_smoothing(label_smoothing));
  kernels::Attrs attrs;
  attrs.i[0] = ignore_index;
  attrs.f[0] = label_smoothing;
  const DType wide = stats_type(x.dtype());
  rows.push(2);  // two numbers per row, whose sum is the row's log-sum-exp
  RILLE_TRY(auto out, apply(OpId::cross_entropy, attrs, {x, y}, {{wide, {}}, {wide, rows}}));
  return std::move(out[0]);
}

void gradient::cross_entropy(Backward& b) {
  b.set(0, b(apply_one(OpId::cross_entropy_grad, b.attrs(), {b.g(), b.in(0), b.in(1), b.out(1)}, b.in_spec(0))));
}

namespace {

// The loss from log-probabilities [.., c]. As in PyTorch, a mean is divided by the sum of the weights of the labels
// that are not ignored.
Result<Tensor> of_labels(const char* op, const Tensor& logs, const Tensor& labels, const LabelLoss& how) {
  RILLE_CHECK(need_float_beside(op, logs, labels));
  Dims rows = logs.shape();
  rows.n = std::max(0, rows.n - 1);
  if (logs.rank() == 0 || !(rows == labels.shape()) || !is_integer(labels.dtype())) {
    return bad(fmt::format("{}: {} with labels {}{}: expected [.., c] with whole numbers [..]", op,
                           to_string(logs.shape()), name_of(labels.dtype()), to_string(labels.shape())));
  }
  const std::int64_t classes = logs.size(-1);
  if (how.weight && !(how.weight.shape() == dims_of({classes}) && is_floating(how.weight.dtype()))) {
    return bad(fmt::format("{}: weights {}{} for {} classes: expected one weight per class", op,
                           name_of(how.weight.dtype()), to_string(how.weight.shape()), classes),
               "a number for each class: tensor(LIST)");
  }
  RILLE_TRY(const auto ids, cast(labels, DType::i64));
  RILLE_TRY(const auto ignored, eq(ids, double(how.ignore_index)));
  RILLE_TRY(const auto safe, masked_fill(ids, ignored, 0));
  RILLE_TRY(const auto column, unsqueeze(safe, -1));
  RILLE_TRY(const auto picked, gather(logs, -1, column));
  RILLE_TRY(const auto wide_logs, wide(picked));
  RILLE_TRY(auto losses, view(wide_logs, labels.shape()));
  Tensor weights, shares;  // weights: per class; shares: per label, 0 for ignored labels
  if (how.weight) {
    RILLE_TRY(weights, wide(how.weight));
    RILLE_TRY(const auto flat, view(safe, dims_of({safe.count()})));
    RILLE_TRY(const auto each, index_select(weights, 0, flat));
    RILLE_TRY(const auto shaped, view(each, labels.shape()));
    RILLE_TRY(shares, masked_fill(shaped, ignored, 0));
    RILLE_TRY(losses, mul(losses, shaped));
  }
  if (how.label_smoothing > 0) {  // that share of the target is spread over all classes
    RILLE_TRY(auto all, wide(logs));
    if (how.weight) { RILLE_TRY(all, mul(all, weights)); }
    RILLE_TRY(const auto summed, sum(all, {-1}));
    RILLE_TRY(const auto others, mul(summed, how.label_smoothing / double(classes)));
    RILLE_TRY(const auto own, mul(losses, 1 - how.label_smoothing));
    RILLE_TRY(losses, add(own, others));
  }
  RILLE_TRY(losses, masked_fill(losses, ignored, 0));
  if (how.reduce == Reduce::none) return neg(losses);
  RILLE_TRY(const auto total, sum(losses));
  if (how.reduce == Reduce::sum) return neg(total);
  if (!how.weight) { RILLE_TRY(shares, logical_not(ignored)); }
  RILLE_TRY(const auto count, sum(shares));
  RILLE_TRY(const auto each, div(total, count));
  return neg(each);
}

}  // namespace

Result<Tensor> nll_loss(const Tensor& log_probabilities, const Tensor& labels, const LabelLoss& how) {
  return of_labels("nll_loss", log_probabilities, labels, how);
}

// The unweighted mean is one fused operation that does not store the probabilities.
Result<Tensor> cross_entropy(const Tensor& logits, const Tensor& labels, const LabelLoss& how) {
  if (how.reduce == Reduce::mean && !how.weight)
    return cross_entropy(logits, labels, how.ignore_index, how.label_smoothing);
  RILLE_CHECK(need_label_smoothing(how.label_smoothing));
  RILLE_CHECK(need_float_beside("cross_entropy", logits, labels));
  // For a 0-d tensor the other overload returns its error.
  if (logits.rank() == 0) return cross_entropy(logits, labels, how.ignore_index, how.label_smoothing);
  RILLE_TRY(const auto x, wide(logits));
  RILLE_TRY(const auto logs, log_softmax(x, -1));
  return of_labels("cross_entropy", logs, labels, how);
}

}  // namespace rille::tensor
