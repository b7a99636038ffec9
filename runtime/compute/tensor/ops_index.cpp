// Choosing, placing and ordering elements by number, and shapes made of other shape operations.
#include "runtime/compute/tensor/check.hpp"

namespace rille::tensor {

namespace {

Result<Tensor> numbers_of(const char* op, const Tensor& a, const Tensor& index) {
  RILLE_CHECK(need(op, a));
  RILLE_CHECK(need(op, index));
  if (!is_integer(index.dtype())) {
    return bad(fmt::format("{}: {}{} with numbers of {}{}: want whole numbers", op, name_of(a.dtype()),
                           to_string(a.shape()), name_of(index.dtype()), to_string(index.shape())));
  }
  return contiguous(index);
}

// index has a's rank, and along other dimensions at most a's sizes.
Result<void> need_index_within(const char* op, const Tensor& a, int d, const Tensor& index) {
  bool fits = a.rank() == index.rank() && a.rank() > 0;
  for (int i = 0; fits && i < a.rank(); ++i) fits = i == d || index.shape()[i] <= a.shape()[i];
  if (fits) return success();
  return bad(fmt::format("{}: {} along dimension {} by numbers of {}: want as many dimensions, and no larger sizes", op,
                         to_string(a.shape()), d + 1, to_string(index.shape())));
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
    return bad(fmt::format("{}: values of {} at numbers of {}: want the same shape", op, to_string(src.shape()),
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
    return bad(
        fmt::format("index_select: {} by numbers of {}: want a list", to_string(a.shape()), to_string(index.shape())));
  }
  RILLE_TRY(const auto whole, contiguous(a));
  Dims shape = a.shape();
  shape[d] = index.size(0);
  return apply_one(OpId::index_select, along(d), {whole, numbers}, {a.dtype(), shape});
}

// The numbers name positions of one dimension; all else is put, or added, as it stands.
Result<Tensor> index_put(const Tensor& a, int dim, const Tensor& index, const Tensor& src, bool add) {
  const char* op = add ? "index_add" : "index_copy";
  RILLE_CHECK(need(op, a));
  RILLE_CHECK(need(op, index));
  RILLE_CHECK(need(op, src));
  RILLE_TRY(const int d, normal_dim(op, dim, a.rank()));
  Dims want = a.shape();
  if (index.rank() == 1 && a.rank() > 0) want[d] = index.size(0);
  if (index.rank() != 1 || !(src.shape() == want)) {
    return bad(fmt::format("{}: {} in {} at numbers of {}: want {} and a list", op, to_string(src.shape()),
                           to_string(a.shape()), to_string(index.shape()), to_string(want)));
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
  if (classes < 1) return bad(fmt::format("one_hot: {} with {} classes", to_string(ids.shape()), classes));
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
  if (k > a.shape()[d]) return bad(fmt::format("{}: {} of {} along dimension {}", op, k, to_string(a.shape()), d + 1));
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
  if (k < 0) return bad(fmt::format("topk: {} elements", k));
  return sorted("topk", a, dim, largest, k);
}

namespace {
Result<Tensor> triangle(const char* op, const Tensor& a, std::int64_t diagonal, bool upper) {
  RILLE_CHECK(need(op, a));
  if (a.rank() < 2) return bad(fmt::format("{}: {}: want matrices", op, to_string(a.shape())));
  RILLE_TRY(const auto whole, contiguous(a));
  kernels::Attrs attrs;
  attrs.i[0] = diagonal;
  attrs.i[1] = upper;
  return apply_one(OpId::tril, attrs, {whole}, {a.dtype(), a.shape()});
}
}  // namespace

Result<Tensor> tril(const Tensor& a, std::int64_t diagonal) { return triangle("tril", a, diagonal, false); }
Result<Tensor> triu(const Tensor& a, std::int64_t diagonal) { return triangle("triu", a, diagonal, true); }

// Copied through a window whose strides run backwards; the window itself is seen by nobody else.
Result<Tensor> flip(const Tensor& a, const std::vector<int>& dims) {
  RILLE_CHECK(need("flip", a));
  Dims strides = a.strides();
  kernels::Attrs attrs;
  std::int64_t start = 0;
  for (const int dim : dims) {
    RILLE_TRY(const int d, normal_dim("flip", dim, a.rank()));
    if (attrs.i[0] >> d & 1) return bad(fmt::format("flip: dimension {} of {} twice", d + 1, to_string(a.shape())));
    attrs.i[0] |= std::int64_t(1) << d;
    strides[d] = -strides[d];
    start += (a.shape()[d] - 1) * a.strides()[d];
  }
  if (a.count() == 0) return clone(a);
  const Tensor backwards = make_window(a, start, a.shape(), strides);
  const Tensor out = make_tensor(a.graph(), a.dtype(), a.shape());
  RILLE_CHECK(record(a.graph(), OpId::flip, attrs, {backwards}, {out}));
  attach_grad(OpId::flip, attrs, {a}, {out});
  return out;
}

Result<Tensor> roll(const Tensor& a, std::int64_t shift, int dim) {
  RILLE_CHECK(need("roll", a));
  RILLE_TRY(const int d, normal_dim("roll", dim, a.rank()));
  const std::int64_t n = a.shape()[d];
  const std::int64_t by = n ? (shift % n + n) % n : 0;
  if (by == 0) return clone(a);
  RILLE_TRY(const auto tail, narrow(a, d, n - by, by));
  RILLE_TRY(const auto head, narrow(a, d, 0, n - by));
  return cat({tail, head}, d);
}

Result<Tensor> stack(const std::vector<Tensor>& parts, int dim) {
  std::vector<Tensor> wide;
  for (const auto& p : parts) {
    RILLE_CHECK(need("stack", p));
    if (!(p.shape() == parts[0].shape())) {
      return bad(
          fmt::format("stack: {} and {}: want the same shape", to_string(parts[0].shape()), to_string(p.shape())));
    }
    RILLE_TRY(auto one, unsqueeze(p, dim));
    wide.push_back(std::move(one));
  }
  return cat(wide, dim);
}

Result<Tensor> flatten(const Tensor& a, int first, int last) {
  RILLE_CHECK(need("flatten", a));
  if (a.rank() == 0) return view(a, dims_of({1}));
  RILLE_TRY(const int from, normal_dim("flatten", first, a.rank()));
  RILLE_TRY(const int to, normal_dim("flatten", last, a.rank()));
  if (to < from) return bad(fmt::format("flatten: dimensions {} to {} of {}", from + 1, to + 1, to_string(a.shape())));
  Dims shape;
  for (int i = 0; i < a.rank(); ++i) {
    if (i <= from || i > to) shape.push(a.shape()[i]);
    else shape[from] *= a.shape()[i];
  }
  return reshape(a, shape);
}

namespace {
// What is written into it is not to change the operand: a copy where both are the same memory.
Result<Tensor> copied(const Tensor& a, Result<Tensor> t) {
  return t && t->impl()->storage == a.impl()->storage ? clone(*t) : t;
}
}  // namespace

// [a, b] as [1, a, 1, b], grown to [x, a, y, b], seen as [x a, y b].
Result<Tensor> tile(const Tensor& a, const Dims& times) {
  RILLE_CHECK(need("tile", a));
  Dims apart, grown, shape;
  const int extra = times.n - a.rank();
  bool fits = extra >= 0 && times.n + a.rank() <= kernels::max_rank;
  for (int i = 0; fits && i < times.n; ++i) {
    const std::int64_t size = i < extra ? 1 : a.shape()[i - extra];
    fits = times[i] >= 0;
    apart.push(1);
    grown.push(times[i]);
    if (i >= extra) {
      apart.push(size);
      grown.push(size);
    }
    shape.push(times[i] * size);
  }
  if (!fits) {
    return bad(fmt::format("tile: {} by {}: want a number for each dimension, {} in all at most", to_string(a.shape()),
                           to_string(times), kernels::max_rank - a.rank()));
  }
  RILLE_TRY(const auto seen, view(a, apart));
  RILLE_TRY(const auto wide, expand(seen, grown));
  return copied(a, reshape(wide, shape));
}

Result<Tensor> repeat_interleave(const Tensor& a, std::int64_t times, int dim) {
  RILLE_CHECK(need("repeat_interleave", a));
  RILLE_TRY(const int d, normal_dim("repeat_interleave", dim, a.rank()));
  if (times < 0) return bad(fmt::format("repeat_interleave: {}, {} times", to_string(a.shape()), times));
  RILLE_TRY(const auto apart, unsqueeze(a, d + 1));
  Dims grown = apart.shape(), shape = a.shape();
  grown[d + 1] = times;
  shape[d] *= times;
  RILLE_TRY(const auto wide, expand(apart, grown));
  return copied(a, reshape(wide, shape));
}

Result<Tensor> pad(const Tensor& a, const std::vector<std::int64_t>& edges, double value) {
  RILLE_CHECK(need("pad", a));
  if (edges.size() % 2 || int(edges.size()) > 2 * a.rank()) {
    return bad(fmt::format("pad: {} with {} edges: want two for each dimension, from the last", to_string(a.shape()),
                           edges.size()));
  }
  Tensor t = a;
  RILLE_TRY(const auto constant, full(a.graph(), {}, value, a.dtype()));
  for (std::size_t i = 0; i < edges.size(); i += 2) {
    const int d = a.rank() - 1 - int(i / 2);
    std::vector<Tensor> parts{t};
    for (const std::size_t side : {i, i + 1}) {
      if (edges[side] < 0) return bad(fmt::format("pad: an edge of {}", edges[side]), "narrow takes away");
      if (edges[side] == 0) continue;
      Dims shape = t.shape();
      shape[d] = edges[side];
      RILLE_TRY(auto edge, expand(constant, shape));
      parts.insert(side == i ? parts.begin() : parts.end(), std::move(edge));
    }
    if (parts.size() > 1) { RILLE_TRY(t, cat(parts, d)); }
  }
  return copied(a, t);
}

}  // namespace rille::tensor
