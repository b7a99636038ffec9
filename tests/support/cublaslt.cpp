// libcublasLt.so.13 for tests: plain loops with the library's conventions (column-major, leading dimensions, strided
// batches, a bias along D's rows, activations of the sum before it is rounded), run on the stand-in driver's stream.
// The products verify how the plug-in describes its matrices. TF32 rounds its inputs, as the hardware does.
#include <algorithm>
#include <cmath>

#include "library.hpp"

namespace {

struct Desc {
  int compute = 0, scale = 0, transpose_a = 0, transpose_b = 0, epilogue = 1;
  const void* bias = nullptr;
  void* before = nullptr;
  std::int64_t ld_before = 0;
};
struct Layout {
  int type = 0;
  std::int64_t rows = 0, columns = 0, ld = 0, stride = 0;
  std::int32_t batches = 1;
};
struct Result {
  std::uint64_t algorithm[8];
  std::size_t scratch_bytes;
  int state;
  float waves;
  int reserved[4];
};
constexpr int f32 = 0, f64 = 1, f16 = 2, bf16 = 14, tf32 = 77;

template <class T>
void multiply(const Desc& o, const Layout& la, const Layout& lb, const Layout& ld, const T* a, const T* b, T* d,
              double beta) {
  const auto read = [&](T x) { return o.compute == tf32 ? rille::test::to_tf32(double(x)) : double(x); };
  const std::int64_t inner = o.transpose_a ? la.rows : la.columns;
  for (std::int32_t batch = 0; batch < ld.batches; ++batch) {
    const T *at = a + batch * la.stride, *bt = b + batch * lb.stride;
    T* dt = d + batch * ld.stride;
    for (std::int64_t j = 0; j < ld.columns; ++j) {
      for (std::int64_t i = 0; i < ld.rows; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < inner; ++k)
          sum += read(at[o.transpose_a ? k + i * la.ld : i + k * la.ld]) *
                 read(bt[o.transpose_b ? j + k * lb.ld : k + j * lb.ld]);
        if (o.epilogue & 4) sum += double(static_cast<const T*>(o.bias)[i]);
        if (o.epilogue & 128) static_cast<T*>(o.before)[i + j * o.ld_before] = T(sum);
        if (o.epilogue & 2) sum = sum > 0 ? sum : 0;
        if (o.epilogue & 32) sum /= 1 + std::exp(-1.5957691216057308 * (sum + 0.044715 * sum * sum * sum));
        T& to = dt[i + j * ld.ld];
        to = T(sum + (beta == 0 ? 0 : beta * double(to)));
      }
    }
  }
}

// The alignment of an address, as algorithms are chosen for it.
std::uint64_t aligned(const void* p) {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  return at & (~at + 1);
}

bool serves(int type) {
  return type == f32 || type == f64 || ((type == f16 || type == bf16) && !rille::test::declines_half());
}

}  // namespace

extern "C" {
#define API __attribute__((visibility("default"))) int

API cublasLtCreate(void** handle) {
  if (!rille::test::library_call()) return 1;  // CUBLAS_STATUS_NOT_INITIALIZED
  *handle = new int(0);
  return 0;
}
API cublasLtDestroy(void* handle) {
  delete static_cast<int*>(handle);
  return 0;
}
API cublasLtMatmulDescCreate(void** desc, int compute, int scale) {
  if (compute != 68 && compute != 70 && compute != tf32) return 7;
  *desc = new Desc{compute, scale};
  return 0;
}
API cublasLtMatmulDescDestroy(void* desc) {
  delete static_cast<Desc*>(desc);
  return 0;
}
API cublasLtMatmulDescSetAttribute(void* desc, int what, const void* value, std::size_t bytes) {
  auto& d = *static_cast<Desc*>(desc);
  void* const to = what == 3    ? static_cast<void*>(&d.transpose_a)
                   : what == 4  ? static_cast<void*>(&d.transpose_b)
                   : what == 11 ? static_cast<void*>(&d.before)
                   : what == 12 ? static_cast<void*>(&d.ld_before)
                   : what == 7  ? static_cast<void*>(&d.epilogue)
                   : what == 8  ? static_cast<void*>(&d.bias)
                                : nullptr;
  if (!to || bytes != (what == 8 || what == 11 || what == 12 ? 8 : 4)) return 7;  // CUBLAS_STATUS_INVALID_VALUE
  std::memcpy(to, value, bytes);
  return 0;
}
API cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld) {
  if (ld < std::int64_t(rows)) return 7;
  *layout = new Layout{type, std::int64_t(rows), std::int64_t(columns), ld, 0, 1};
  return 0;
}
API cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
API cublasLtMatrixLayoutSetAttribute(void* layout, int what, const void* value, std::size_t bytes) {
  auto& l = *static_cast<Layout*>(layout);
  if ((what != 5 || bytes != 4) && (what != 6 || bytes != 8)) return 7;
  std::memcpy(what == 5 ? static_cast<void*>(&l.batches) : static_cast<void*>(&l.stride), value, bytes);
  return 0;
}
API cublasLtMatmulPreferenceCreate(void** p) {
  *p = new int(0);
  return 0;
}
API cublasLtMatmulPreferenceDestroy(void* p) {
  delete static_cast<int*>(p);
  return 0;
}
API cublasLtMatmulPreferenceSetAttribute(void*, int what, const void*, std::size_t bytes) {
  return bytes == (what == 1 ? 8 : 4) ? 0 : 7;
}
API cublasLtMatmulAlgoGetHeuristic(void*, void* desc, void* a, void* b, void* c, void* d, void*, int, Result* result,
                                   int* found) {
  const auto& o = *static_cast<Desc*>(desc);
  const auto &la = *static_cast<Layout*>(a), &lb = *static_cast<Layout*>(b), &ld = *static_cast<Layout*>(d);
  const auto rows = o.transpose_a ? la.columns : la.rows, inner = o.transpose_a ? la.rows : la.columns;
  const auto columns = o.transpose_b ? lb.rows : lb.columns, inner_b = o.transpose_b ? lb.columns : lb.rows;
  if (rows != ld.rows || columns != ld.columns || inner != inner_b || c != d) return 7;
  if (o.ld_before % 8 || (o.epilogue & 128 ? o.ld_before < ld.rows : o.ld_before != 0)) return 7;
  // From the library's header: the pointer's value determines the alignment that the heuristic assumes.
  if ((o.epilogue & 4 && !o.bias) || (o.epilogue & 128 && !o.before)) return 7;
  *found = serves(la.type) && ld.type == la.type && lb.type == la.type && o.scale == (la.type == f64 ? f64 : f32);
  *result = {};
  result->algorithm[0] = aligned(o.bias);
  result->algorithm[1] = aligned(o.before);
  result->scratch_bytes = 1 << 12;
  return *found ? 0 : 15;  // CUBLAS_STATUS_NOT_SUPPORTED
}
API cublasLtMatmul(void*, void* desc, const void*, const void* a, void* layout_a, const void* b, void* layout_b,
                   const void* beta, const void*, void*, void* d, void* layout_d, const void* algorithm, void* scratch,
                   std::size_t bytes, void* stream) {
  const Desc o = *static_cast<Desc*>(desc);
  const auto* chosen = static_cast<const std::uint64_t*>(algorithm);
  if (aligned(o.bias) < std::min<std::uint64_t>(chosen[0], 256) ||
      aligned(o.before) < std::min<std::uint64_t>(chosen[1], 256))
    return 7;
  const Layout la = *static_cast<Layout*>(layout_a), lb = *static_cast<Layout*>(layout_b),
               ld = *static_cast<Layout*>(layout_d);
  const double scale = o.scale == f64 ? *static_cast<const double*>(beta) : double(*static_cast<const float*>(beta));
  const std::function<void()> run = [=] {
    std::memset(scratch, 0xff, bytes);  // as the library may: the workspace belongs to the product
    const auto as = [&](auto type) {
      typedef decltype(type) T;
      multiply(o, la, lb, ld, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(d), scale);
    };
    switch (la.type) {
      case f64: return as(double());
      case f16: return as(rille::test::Half());
      case bf16: return as(rille::test::Brain());
      default: return as(float());
    }
  };
  return rille::test::library_call()(stream, &run);
}

}  // extern "C"
