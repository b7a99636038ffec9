#include "runtime/compute/device/cuda/blas.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime/compute/device/cuda/blas_library.hpp"
#include "runtime/compute/device/cuda/symbols.hpp"

namespace rille::device::cuda {

namespace {

using namespace lt;
constexpr std::size_t scratch_most = 32u << 20;
constexpr Status described_badly = -1;

struct Library {
#define RILLE_MEMBER(name, symbol, parameters) Status(*name) parameters = nullptr;
  RILLE_BLAS(RILLE_MEMBER)
#undef RILLE_MEMBER
  bool whole = false;

  Library() {
    Symbols found(CudaPart::cublaslt);
#define RILLE_FIND(name, symbol, parameters) found.find(name, #symbol);
    RILLE_BLAS(RILLE_FIND)
#undef RILLE_FIND
    whole = found.whole();
  }
};

const Library& library() {
  static const Library l;
  return l;
}

// cuBLASLt's descriptors of one matrix product; the destructor destroys them.
struct Described {
  const Library& l = library();
  void *desc = nullptr, *a = nullptr, *b = nullptr, *d = nullptr, *preference = nullptr;
  bool good = false;

  explicit Described(const BlasShape& s) {
    const bool wide = s.type == real_f64;
    const int compute = wide ? compute_64f : s.tf32 ? compute_tf32 : compute_32f;
    good = !l.desc_create(&desc, compute, wide ? real_f64 : real_f32) &&
           !l.layout_create(&a, s.type, std::uint64_t(s.transpose_a ? s.k : s.m),
                            std::uint64_t(s.transpose_a ? s.m : s.k), s.lda) &&
           !l.layout_create(&b, s.type, std::uint64_t(s.transpose_b ? s.n : s.k),
                            std::uint64_t(s.transpose_b ? s.k : s.n), s.ldb) &&
           !l.layout_create(&d, s.type_d, std::uint64_t(s.m), std::uint64_t(s.n), s.ldd);
    if (s.transpose_a) set(l.desc_set, desc, desc_transpose_a, operation_t);
    if (s.transpose_b) set(l.desc_set, desc, desc_transpose_b, operation_t);
    if (s.epilogue != epilogue_none) set(l.desc_set, desc, desc_epilogue, s.epilogue);
    if (s.ld_before) set(l.desc_set, desc, desc_ld_before, s.ld_before);
    if (s.batches == 1) return;
    const std::pair<void*, std::int64_t> strides[] = {{a, s.stride_a}, {b, s.stride_b}, {d, s.stride_d}};
    for (const auto& [layout, stride] : strides) {
      set(l.layout_set, layout, layout_batches, std::int32_t(s.batches));
      set(l.layout_set, layout, layout_stride, stride);
    }
  }
  ~Described() {
    if (preference) l.prefer_destroy(preference);
    for (void* layout : {a, b, d})
      if (layout) l.layout_destroy(layout);
    if (desc) l.desc_destroy(desc);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  template <class T>
  void set(Status (*function)(void*, int, const void*, std::size_t), void* of, int what, const T& value) {
    good = good && !function(of, what, &value, sizeof value);
  }
  // Sets the addresses of the bias and of the activation's input, whose alignment the heuristic reads.
  void point(const BlasShape& s, const kernels::cuda::Launcher::Product& p) {
    if (s.bias) set(l.desc_set, desc, desc_bias, static_cast<const void*>(p.bias->data));
    if (s.ld_before) set(l.desc_set, desc, desc_before, static_cast<const void*>(p.before->data));
  }
  void prefer(const BlasShape& s) {
    good = good && !l.prefer_create(&preference);
    set(l.prefer_set, preference, prefer_scratch, scratch_most);
    // Without this preference partial sums may be added in the output's type instead of f32.
    set(l.prefer_set, preference, prefer_reduction, reduce_in_compute_type);
    set(l.prefer_set, preference, prefer_align_a, s.align_a);
    set(l.prefer_set, preference, prefer_align_b, s.align_b);
    set(l.prefer_set, preference, prefer_align_c, s.align_d);
    set(l.prefer_set, preference, prefer_align_d, s.align_d);
  }
};

// -- shapes and layouts of operands

int type_of(DType t) {
  switch (t) {
    case DType::f32: return real_f32;
    case DType::f64: return real_f64;
    case DType::f16: return real_f16;
    case DType::bf16: return real_bf16;
    default: return -1;
  }
}

// An operand's layout: row-major, for the library a column-major transpose; or flipped, which is column-major.
struct Matrix {
  bool flipped = false;
  std::int64_t ld = 0;
};
bool read(const kernels::View& v, std::int64_t rows, std::int64_t columns, Matrix& m) {
  const int r = v.shape.n;
  const std::int64_t down = rows == 1 ? columns : v.strides[r - 2], across = columns == 1 ? 1 : v.strides[r - 1];
  if (across == 1 && down >= columns) {
    m = {false, down};
    return true;
  }
  const std::int64_t over = columns == 1 ? rows : v.strides[r - 1];
  m = {true, over};
  return (rows == 1 || v.strides[r - 2] == 1) && over >= rows;
}

// Merges all dimensions before the last two into one batch dimension. false: their strides do not allow it.
bool batches_of(const kernels::View& v, const kernels::View& out, std::int64_t& count, std::int64_t& stride) {
  count = 1;
  stride = 0;
  for (int d = out.shape.n - 3; d >= 0; --d) {
    const std::int64_t size = out.shape[d];
    if (size == 1) continue;
    if (count == 1) stride = v.strides[d];
    else if (v.strides[d] != stride * count) return false;
    count *= size;
  }
  return true;
}

unsigned alignment(const void* p) {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  return unsigned(std::min<std::uintptr_t>(at & (~at + 1), 256));
}

// Sets an epilogue that also writes the activation's input. The library requires a leading dimension that is a multiple
// of 8 and 16-byte alignment; we use it for a single matrix only. false: a rule is not met.
bool with_activation(const kernels::cuda::Launcher::Product& p, bool widens, BlasShape& s) {
  if (s.batches != 1 || widens || p.out->dtype == DType::f64) return false;
  s.epilogue =
      (s.bias ? epilogue_bias : 0) | (p.activation == kernels::Activation::relu ? epilogue_relu : epilogue_gelu);
  if (!p.before) return true;
  Matrix before;
  const int r = p.before->shape.n;
  if (!read(*p.before, p.before->shape[r - 2], p.before->shape[r - 1], before) || before.flipped) return false;
  s.epilogue |= epilogue_before;
  s.ld_before = before.ld;
  s.align_before = alignment(p.before->data);
  return before.ld % 8 == 0 && s.align_before >= 16 && p.activation == kernels::Activation::gelu;
}

}  // namespace

bool blas_shape(const kernels::cuda::Launcher::Product& p, BlasShape& s, const char*& why) {
  const auto &a = *p.a, &b = *p.b, &out = *p.out;
  const int r = out.shape.n;
  s.type = type_of(a.dtype);
  s.type_d = type_of(out.dtype);
  const bool widens = is_half(a.dtype) && out.dtype == DType::f32;
  why = "it does not multiply these types";
  if (s.type < 0 || b.dtype != a.dtype || (out.dtype != a.dtype && !widens)) return false;
  why = "a matrix is stored neither by rows nor by columns";
  std::int64_t rows = out.shape[r - 2];
  const std::int64_t columns = out.shape[r - 1];
  s.k = a.shape[r - 1];
  Matrix left, right, result;
  if (!read(a, rows, s.k, left) || !read(b, s.k, columns, right) || !read(out, rows, columns, result)) return false;
  if (result.flipped) return false;
  why = "the matrices of a batch are not stored at equal distances";
  std::int64_t of_a = 0, of_b = 0, of_out = 0;
  if (!batches_of(a, out, s.batches, of_a) || !batches_of(b, out, s.batches, of_b) ||
      !batches_of(out, out, s.batches, of_out))
    return false;
  // If all batches share B and the rows of A are evenly spaced, compute one product with more rows.
  if (s.batches > 1 && of_b == 0 && !left.flipped && of_a == rows * left.ld && of_out == rows * result.ld) {
    rows *= std::exchange(s.batches, 1);
  }
  if (s.batches > 0x7fffffff) return false;
  why = "it does not support a bias of this form";
  s.bias = p.bias && p.bias->data;
  if (s.bias) {
    const auto& v = *p.bias;
    const bool row = v.dtype == out.dtype && (columns == 1 || v.strides[v.shape.n - 1] == 1);
    bool same = v.shape.n > 0;
    for (int d = 0; d < v.shape.n - 1; ++d) same = same && (v.shape[d] == 1 || v.strides[d] == 0);
    if (!row || !same || a.dtype == DType::f64 || widens) return false;
    s.align_bias = alignment(v.data);
  }
  s.m = columns;
  s.n = rows;
  s.transpose_a = right.flipped;
  s.transpose_b = left.flipped;
  s.lda = right.ld;
  s.ldb = left.ld;
  s.ldd = result.ld;
  s.stride_a = s.batches == 1 ? 0 : of_b;
  s.stride_b = s.batches == 1 ? 0 : of_a;
  s.stride_d = s.batches == 1 ? 0 : of_out;
  s.accumulate = p.accumulate;
  s.tf32 = p.tf32 && a.dtype == DType::f32;
  why = "it does not support this activation for this product";
  if (s.bias) s.epilogue = epilogue_bias;
  if (p.activation != kernels::Activation::none && !with_activation(p, widens, s)) return false;
  s.align_a = alignment(b.data);
  s.align_b = alignment(a.data);
  s.align_d = alignment(out.data);
  return true;
}

bool Blas::ready() {
  if (tried_) {
    if (!handle_) why_ = why_not_;
    return handle_ != nullptr;
  }
  tried_ = true;
  if (left_out(CudaPart::cublaslt)) {
    why_not_ = "the variable RILLE_CUDA_WITHOUT excludes it";
  } else if (!library().whole) {
    const auto& loaded = load_part(CudaPart::cublaslt);
    why_not_ = loaded.handle ? "the library lacks a function that Rille needs" : loaded.why;
  } else if (const Status said = library().create(&handle_)) {
    why_not_ = "cublasLtCreate: status " + std::to_string(said);
    handle_ = nullptr;
  }
  why_ = why_not_;
  return handle_ != nullptr;
}

namespace {

std::string no_algorithm(const BlasShape& s, Status said) {
  char text[320];
  std::snprintf(text, sizeof text,
                "no algorithm (status %d) for m %lld, n %lld, k %lld, %lld batches, types %d and %d, rows of %lld, "
                "%lld and %lld%s%s, epilogue %d, aligned to %u, %u and %u bytes",
                said, static_cast<long long>(s.m), static_cast<long long>(s.n), static_cast<long long>(s.k),
                static_cast<long long>(s.batches), s.type, s.type_d, static_cast<long long>(s.lda),
                static_cast<long long>(s.ldb), static_cast<long long>(s.ldd), s.transpose_a ? ", a turned" : "",
                s.transpose_b ? ", b turned" : "", s.epilogue, s.align_a, s.align_b, s.align_d);
  return text;
}

}  // namespace

Blas::~Blas() {
  if (handle_) library().destroy(handle_);
}

const Blas::Plan* Blas::plan(const BlasShape& s, const kernels::cuda::Launcher::Product& p) {
  if (!ready()) return nullptr;
  std::int64_t numbers[] = {s.m,          s.n,      s.k,        s.transpose_a, s.transpose_b,  s.lda,
                            s.ldb,        s.ldd,    s.batches,  s.stride_a,    s.stride_b,     s.stride_d,
                            s.type,       s.type_d, s.epilogue, s.ld_before,   s.align_before, s.align_bias,
                            s.accumulate, s.tf32,   s.align_a,  s.align_b,     s.align_d};
  const auto [found, fresh] = plans_.try_emplace(std::string(reinterpret_cast<const char*>(numbers), sizeof numbers));
  Plan& plan = found->second;
  if (fresh) {
    Described d(s);
    d.point(s, p);
    d.prefer(s);
    Result result{};
    int count = 0;
    const Status said =
        d.good ? d.l.heuristic(handle_, d.desc, d.a, d.b, d.d, d.d, d.preference, 1, &result, &count) : described_badly;
    plan.good = said == 0 && count == 1 && result.state == 0 && result.scratch_bytes <= scratch_most;
    if (!plan.good) plan.why = no_algorithm(s, said ? said : result.state);
    std::memcpy(plan.algorithm, result.algorithm, sizeof plan.algorithm);
    plan.scratch_bytes = result.scratch_bytes;
  }
  if (!plan.good) why_ = plan.why;
  return plan.good ? &plan : nullptr;
}

bool Blas::run(const BlasShape& s, const Plan& plan, const kernels::cuda::Launcher::Product& p, void* scratch,
               CUstream stream) {
  Described d(s);
  d.point(s, p);
  why_ = "its descriptors could not be created";
  if (!d.good) return false;
  const float one = 1, none = 0;
  const double one_wide = 1, none_wide = 0;
  const bool wide = s.type == real_f64;
  const void* alpha = wide ? static_cast<const void*>(&one_wide) : &one;
  const void* beta = s.accumulate ? alpha : wide ? static_cast<const void*>(&none_wide) : &none;
  const Status said = d.l.matmul(handle_, d.desc, alpha, p.b->data, d.a, p.a->data, d.b, beta, p.out->data, d.d,
                                 p.out->data, d.d, plan.algorithm, scratch, plan.scratch_bytes, stream);
  if (said) why_ = "cublasLtMatmul: status " + std::to_string(said);
  return said == 0;
}

}  // namespace rille::device::cuda
