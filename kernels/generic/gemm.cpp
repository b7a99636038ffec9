// Matrix products: oneDNN matmul primitives, cached on the lane; dnnl_sgemm inside parallel kernels; loops for f64.
#include "kernels/gemm.hpp"

#include <omp.h>

#include <cstring>

#include "kernels/kernels.hpp"
#include "kernels/onednn.hpp"

namespace rille::kernels {

bool gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a,
          std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  return dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) == dnnl_success;
}

bool gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a,
          std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += (ta ? a[p * lda + i] : a[i * lda + p]) * (tb ? b[j * ldb + p] : b[p * ldb + j]);
      c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
    }
  }
  return true;
}

namespace {

struct Product {
  dnnl::primitive primitive;
  dnnl::memory a, b, bias, c, scratchpad;
  std::unordered_map<int, dnnl::memory> arguments;
};

}  // namespace

struct GemmCache::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  onednn::Kept<Product> products;
  Product& product(const View& a, const View& b, const View* bias, const View& c);
  std::unique_ptr<Product> make(const View& a, const View& b, const View* bias, const View& c) const;
};

GemmCache::GemmCache() : state_(new State) {}
GemmCache::~GemmCache() { delete state_; }

Product& GemmCache::State::product(const View& a, const View& b, const View* bias, const View& c) {
  onednn::Key key(c.shape.n * 4 + (c.dtype == DType::bf16) * 2 + (bias != nullptr), {&a, &b});
  key.add(c.strides[c.shape.n - 2]);  // differs for a part of a product
  return products.get(key, [&] { return make(a, b, bias, c); });
}

std::unique_ptr<Product> GemmCache::State::make(const View& a, const View& b, const View* bias, const View& c) const {
  auto made = std::make_unique<Product>();
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto da = onednn::describe(a), db = onednn::describe(b), dc = onednn::describe(c);
  dnnl::memory::desc dbias;
  if (bias) {
    Dims shape = c.shape, strides = c.strides;
    for (int d = 0; d < shape.n; ++d) {
      strides[d] = d == shape.n - 1 ? 1 : shape[shape.n - 1];
      if (d < shape.n - 1) shape[d] = 1;
    }
    dbias = onednn::describe(bias->dtype, shape, strides);
  }
  const auto desc = bias ? dnnl::matmul::desc(da, db, dbias, dc) : dnnl::matmul::desc(da, db, dc);
  const dnnl::matmul::primitive_desc pd(desc, attr, engine);
  made->primitive = dnnl::matmul(pd);
  made->a = dnnl::memory(da, engine, DNNL_MEMORY_NONE);
  made->b = dnnl::memory(db, engine, DNNL_MEMORY_NONE);
  made->c = dnnl::memory(dc, engine, DNNL_MEMORY_NONE);
  made->scratchpad = dnnl::memory(pd.scratchpad_desc(), engine, DNNL_MEMORY_NONE);
  made->arguments = {{DNNL_ARG_SRC, made->a},
                     {DNNL_ARG_WEIGHTS, made->b},
                     {DNNL_ARG_DST, made->c},
                     {DNNL_ARG_SCRATCHPAD, made->scratchpad}};
  if (bias) {
    made->bias = dnnl::memory(dbias, engine, DNNL_MEMORY_NONE);
    made->arguments.emplace(DNNL_ARG_BIAS, made->bias);
  }
  return made;
}

namespace {

void matmul_f64(const Call& c) {
  const View &a = c.in[0], &b = c.in[1], &o = c.out[0];
  const int r = o.shape.n;
  const std::int64_t m = o.shape[r - 2], n = o.shape[r - 1], k = a.shape[r - 1], batches = o.count() / (m * n);
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    std::int64_t at = 0, bt = 0, rest = batch;
    for (int d = r - 3; d >= 0; --d) {
      at += rest % o.shape[d] * a.strides[d];
      bt += rest % o.shape[d] * b.strides[d];
      rest /= o.shape[d];
    }
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        if ((j % 16 == 0 || k > 65536) && c.stopped()) return;
        double sum = c.n_in == 3 ? c.in[2].ptr<double>()[j] : 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += a.ptr<double>()[at + i * a.strides[r - 2] + p * a.strides[r - 1]] *
                 b.ptr<double>()[bt + p * b.strides[r - 2] + j * b.strides[r - 1]];
        }
        o.ptr<double>()[(batch * m + i) * n + j] = sum;
      }
    }
  }
}

}  // namespace

bool native_bf16() {
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has && isa_level() == 4;
}

namespace {

// A matrix as BLAS accepts it: contiguous rows, or contiguous columns (turned).
struct Plain {
  bool turned = false;
  std::int64_t ld = 0;  // stride between rows (turned: columns); 0: BLAS cannot take the matrix
};

Plain plain(const View& v) {
  const std::int64_t rows = v.shape[0], columns = v.shape[1], down = v.strides[0], across = v.strides[1];
  if (across == 1 && down >= columns && down > 1) return {false, down};
  if (down == 1 && across >= rows && across > 1) return {true, across};
  return {};
}

// oneDNN's sgemm packs both operands. If the left operand is transposed (gradients of weights) or the right one is not
// (gradients of inputs), sgemm is 1 to 40 % faster than the matmul primitive, otherwise up to 10 % slower (measured
// with oneDNN 2.6.3 on AVX-512, with the shapes of GPT-2).
bool multiplied_by_sgemm(const Call& c) {
  const View &a = c.in[0], &b = c.in[1], &o = c.out[0];
  if (c.n_in == 3 || o.dtype != DType::f32 || o.shape.n != 2 || a.shape.n != 2 || b.shape.n != 2) return false;
  const Plain pa = plain(a), pb = plain(b), po = plain(o);
  if (!pa.ld || !pb.ld || !po.ld || po.turned || (!pa.turned && pb.turned)) return false;
  return gemm(pa.turned, pb.turned, o.shape[0], o.shape[1], a.shape[1], 1.0f, a.ptr<float>(), pa.ld, b.ptr<float>(),
              pb.ld, 0.0f, o.ptr<float>(), po.ld);
}

// The dimension along which to cut the product; -1: compute it as a whole. Batch dimensions first, then the longer
// side, so that the smaller operand is the one packed again.
int cut_dimension(const Call& c) {
  const View& o = c.out[0];
  const int r = o.shape.n;
  const double work = double(o.count()) * double(c.in[0].shape[c.in[0].shape.n - 1]), most = c.lane->parts_above();
  if (most == 0 || work <= most * omp_get_max_threads()) return -1;
  for (int d = 0; d < r - 2; ++d)
    if (o.shape[d] > 1) return d;
  const int longer = o.shape[r - 1] > o.shape[r - 2] ? r - 1 : r - 2;
  return o.shape[longer] >= 1024 ? longer : -1;
}

View part_of(const View& v, int dim, std::int64_t first, std::int64_t n) {
  View part = v;
  part.data = v.ptr<char>() + first * v.strides[dim] * std::int64_t(size_bytes(v.dtype));
  part.shape[dim] = n;
  return part;
}

// Computes both halves, one after the other; each half is cut again if it is still large.
void matmul_in_parts(const Call& c, int dim) {
  const View &a = c.in[0], &b = c.in[1], &o = c.out[0];
  const int r = o.shape.n;
  const std::int64_t n = o.shape[dim], half = (n / 2 + 63) / 64 * 64, middle = half < n ? half : n / 2;
  for (const std::int64_t first : {std::int64_t(0), middle}) {
    if (c.stopped()) return;
    const std::int64_t count = first ? n - middle : middle;
    View in[3] = {a, b, c.n_in == 3 ? c.in[2] : View{}};
    if (dim != r - 1) in[0] = part_of(a, dim, first, count);
    if (dim != r - 2) in[1] = part_of(b, dim, first, count);
    if (dim == r - 1 && c.n_in == 3) in[2] = part_of(in[2], 0, first, count);
    const View out = part_of(o, dim, first, count);
    Call part = c;
    part.in = in;
    part.out = &out;
    matmul(part);
  }
}

}  // namespace

// in: a [b.., m, k], b [b.., k, n], optionally bias [n]; out: c [b.., m, n], contiguous. Batch dimensions are equal or
// broadcast (stride 0). Each matrix has a unit stride in one of its last two dimensions; the caller copies other
// matrices first.
void matmul(const Call& c) {
  if (c.out[0].count() == 0) return;
  const DType type = c.out[0].dtype;
  if (type == DType::f16 || (type == DType::bf16 && !native_bf16())) return widened(c, &matmul);
  if (c.out[0].dtype == DType::f64 || c.in[0].shape[c.in[0].shape.n - 1] == 0) {
    if (c.out[0].dtype == DType::f64) return matmul_f64(c);
    // The inner dimension is 0, so every sum has no terms. Such a product never comes with a bias.
    std::memset(c.out[0].data, 0, std::size_t(c.out[0].count()) * size_bytes(c.out[0].dtype));
    return;
  }
  if (const int dim = cut_dimension(c); dim >= 0) return matmul_in_parts(c, dim);
  if (multiplied_by_sgemm(c)) return;
  // oneDNN throws on failure; the exception becomes the error of this call.
  try {
    auto& state = c.lane->gemms().state();
    Product& p = state.product(c.in[0], c.in[1], c.n_in == 3 ? &c.in[2] : nullptr, c.out[0]);
    p.a.set_data_handle(c.in[0].data);
    p.b.set_data_handle(c.in[1].data);
    p.c.set_data_handle(c.out[0].data);
    if (c.n_in == 3) p.bias.set_data_handle(c.in[2].data);
    if (const auto bytes = p.scratchpad.get_desc().get_size()) {
      void* const memory = c.lane->scratch(bytes);
      if (!memory)
        return c.fail("matmul: no memory for %zu bytes of scratch\nwork on smaller tensors or batches, or free tensors",
                      bytes);
      p.scratchpad.set_data_handle(memory);
    }
    p.primitive.execute(state.stream, p.arguments);
    state.stream.wait();
  } catch (const std::exception& e) { c.fail("matmul: oneDNN: %s", e.what()); }
}

// A product followed by an activation. in: as for matmul; out: the activation's result, then optionally the product.
// attrs.i[0]: an Activation. On the CPU the bits equal those of two separate operations.
void matmul_activated(const Call& c) {
  const View& before = c.out[c.n_out - 1];  // the output itself if the product is not requested
  Call product = c;
  product.out = &before;
  product.n_out = 1;
  matmul(product);
  Call activation = c;
  activation.in = &before;
  activation.n_in = activation.n_out = 1;
  if (Activation(c.attrs->i[0]) == Activation::relu) relu(activation);
  else gelu(activation);
}

}  // namespace rille::kernels
