// Gather, scatter, and sorting.
#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

namespace {

Result<Tensor> numbers_of(const char* op, const Tensor& a, const Tensor& index) {
  RILLE_CHECK(need(op, a));
  RILLE_CHECK(need(op, index));
  if (!is_integer(index.dtype())) {
    return bad(fmt::format("{}: {}{} with indices of {}{}: expected whole numbers", op, name_of(a.dtype()),
                           to_string(a.shape()), name_of(index.dtype()), to_string(index.shape())));
  }
  return contiguous(index);
}

// Requires an index with as many dimensions as `a`, which except in dimension d is no larger than `a`.
Result<void> need_index_within(const char* op, const Tensor& a, int d, const Tensor& index) {
  bool fits = a.rank() == index.rank() && a.rank() > 0;
  for (int i = 0; fits && i < a.rank(); ++i) fits = i == d || index.shape()[i] <= a.shape()[i];
  if (fits) return success();
  return bad(fmt::format("{}: {} along dimension {} by indices of {}: expected as many dimensions, and no larger sizes",
                         op, to_string(a.shape()), d + 1, to_string(index.shape())));
}

kernels::Attrs along(int d) {
  kernels::Attrs attrs;
  attrs.i[0] = d;
  return attrs;
}

}  // namespace

Result<Tensor> gather(const Tensor& a, int dim, const Tensor& index) {
  RILLE_TRY(const auto numbers, numbers_of("gather", a, index));
  RILLE_TRY(const int d, normal_dim("gather", dim, a.rank()));
  RILLE_CHECK(need_index_within("gather", a, d, index));
  return apply_one(OpId::gather, along(d), {a, numbers}, {a.dtype(), index.shape()});
}

Result<Tensor> scatter(const Tensor& a, int dim, const Tensor& index, const Tensor& src, bool add) {
  const char* op = add ? "scatter_add" : "scatter";
  RILLE_TRY(const auto numbers, numbers_of(op, a, index));
  RILLE_CHECK(need(op, src));
  RILLE_CHECK(need_same_dtype(op, a, src));
  RILLE_TRY(const int d, normal_dim(op, dim, a.rank()));
  RILLE_CHECK(need_index_within(op, a, d, index));
  if (!(src.shape() == index.shape())) {
    return bad(fmt::format("{}: values of {} at indices of {}: expected equal shapes", op, to_string(src.shape()),
                           to_string(index.shape())));
  }
  auto attrs = along(d);
  attrs.i[1] = add;
  return apply_one(OpId::scatter, attrs, {a, numbers, src}, {a.dtype(), a.shape()});
}

Result<Tensor> index_select(const Tensor& a, int dim, const Tensor& index) {
  RILLE_TRY(const auto numbers, numbers_of("index_select", a, index));
  RILLE_TRY(const int d, normal_dim("index_select", dim, a.rank()));
  if (index.rank() != 1) {
    return bad(fmt::format("index_select: {} by indices of {}: expected a list of indices", to_string(a.shape()),
                           to_string(index.shape())));
  }
  RILLE_TRY(const auto whole, contiguous(a));
  Dims shape = a.shape();
  shape[d] = index.size(0);
  return apply_one(OpId::index_select, along(d), {whole, numbers}, {a.dtype(), shape});
}

// Writes src into a copy of `a`, or adds it, at the positions `index` of dimension `dim`.
Result<Tensor> index_put(const Tensor& a, int dim, const Tensor& index, const Tensor& src, bool add) {
  const char* op = add ? "index_add" : "index_copy";
  RILLE_CHECK(need(op, a));
  RILLE_CHECK(need(op, index));
  RILLE_CHECK(need(op, src));
  RILLE_TRY(const int d, normal_dim(op, dim, a.rank()));
  Dims want = a.shape();
  if (index.rank() == 1 && a.rank() > 0) want[d] = index.size(0);
  if (index.rank() != 1 || !(src.shape() == want)) {
    return bad(fmt::format("{}: {} in {} at indices of {}: expected {} and a list of indices", op,
                           to_string(src.shape()), to_string(a.shape()), to_string(index.shape()), to_string(want)));
  }
  RILLE_CHECK(numbers_of(op, a, index));
  RILLE_CHECK(need_same_dtype(op, a, src));
  Dims along_it = src.shape();
  for (int k = 0; k < along_it.n; ++k)
    if (k != d) along_it[k] = 1;
  RILLE_TRY(const auto shaped, view(index, along_it));
  RILLE_TRY(const auto each, expand(shaped, src.shape()));
  return scatter(a, d, each, src, add);
}

Result<Tensor> one_hot(const Tensor& ids, std::int64_t classes) {
  RILLE_TRY(const auto numbers, numbers_of("one_hot", ids, ids));
  if (classes < 1)
    return bad(fmt::format("one_hot: {} with {} classes: expected at least 1 class", to_string(ids.shape()), classes));
  RILLE_TRY(const auto each, unsqueeze(numbers, -1));
  RILLE_TRY(const auto all, arange(ids.graph(), 0, double(classes), 1));
  RILLE_TRY(const auto same, eq(each, all));
  return cast(same, DType::i64);
}

namespace {

Result<Sorted> sorted(const char* op, const Tensor& a, int dim, bool descending, std::int64_t k) {
  RILLE_CHECK(need(op, a));
  RILLE_TRY(const int d, normal_dim(op, dim, a.rank()));
  if (k < 0) k = a.shape()[d];
  if (k > a.shape()[d])
    return bad(fmt::format("{}: k = {} for {}: dimension {} has fewer elements", op, k, to_string(a.shape()), d + 1));
  const bool last = d == a.rank() - 1;
  RILLE_TRY(const auto moved, transpose(a, d, -1));
  RILLE_TRY(const auto rows, contiguous(last ? a : moved));
  kernels::Attrs attrs;
  attrs.i[0] = descending;
  Dims shape = rows.shape();
  shape[a.rank() - 1] = k;
  RILLE_TRY(auto out, apply(OpId::sort, attrs, {rows}, {{a.dtype(), shape}, {DType::i64, shape}}));
  if (last) return Sorted{out[0], out[1]};
  RILLE_TRY(const auto values, transpose(out[0], d, -1));
  RILLE_TRY(const auto places, transpose(out[1], d, -1));
  return Sorted{values, places};
}

}  // namespace

Result<Sorted> sort(const Tensor& a, int dim, bool descending) { return sorted("sort", a, dim, descending, -1); }

Result<Sorted> topk(const Tensor& a, std::int64_t k, int dim, bool largest) {
  if (k < 0) return bad(fmt::format("topk: {} elements: expected 0 or more", k));
  return sorted("topk", a, dim, largest, k);
}

namespace {

Result<Tensor> triangle(const char* op, const Tensor& a, std::int64_t diagonal, bool upper) {
  RILLE_CHECK(need(op, a));
  if (a.rank() < 2) return bad(fmt::format("{}: {}: expected matrices", op, to_string(a.shape())));
  RILLE_TRY(const auto whole, contiguous(a));
  kernels::Attrs attrs;
  attrs.i[0] = diagonal;
  attrs.i[1] = upper;
  return apply_one(OpId::tril, attrs, {whole}, {a.dtype(), a.shape()});
}

}  // namespace

Result<Tensor> tril(const Tensor& a, std::int64_t diagonal) { return triangle("tril", a, diagonal, false); }
Result<Tensor> triu(const Tensor& a, std::int64_t diagonal) { return triangle("triu", a, diagonal, true); }

// If gather read an element several times, the element's gradient is the sum of the gradients of all reads.
void gradient::gather(Backward& b) {
  const Tensor zero = b(tensor::expand(b(zeros(b.g().graph(), {}, b.in_spec(0).dtype)), b.in_spec(0).shape));
  if (b.needs(0)) b.set(0, b(tensor::scatter(zero, int(b.attrs().i[0]), b.in(1), b.g(), true)));
}

void gradient::scatter(Backward& b) {
  const int dim = int(b.attrs().i[0]);
  const Tensor zero = b(tensor::expand(b(zeros(b.g().graph(), {}, b.in_spec(0).dtype)), b.in_spec(1).shape));
  if (b.needs(0)) b.set(0, b.attrs().i[1] ? b.g() : b(tensor::scatter(b.g(), dim, b.in(1), zero)));
  if (b.needs(2)) b.set(2, b(tensor::gather(b.g(), dim, b.in(1))));
}

void gradient::index_select(Backward& b) {
  if (!b.needs(0)) return;
  b.set(0, b(apply_one(OpId::index_add, b.attrs(), {b(tensor::contiguous(b.g())), b.in(1)}, b.in_spec(0))));
}

void gradient::sort(Backward& b) {
  const Tensor zero = b(tensor::expand(b(zeros(b.g().graph(), {}, b.in_spec(0).dtype)), b.in_spec(0).shape));
  b.set(0, b(tensor::scatter(zero, -1, b.out(1), b.g())));
}

void gradient::tril(Backward& b) {
  b.set(0, b(apply_one(OpId::tril, b.attrs(), {b(tensor::contiguous(b.g()))}, b.in_spec(0))));
}

}  // namespace rille::tensor
