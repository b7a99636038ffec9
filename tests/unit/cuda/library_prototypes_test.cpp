// The prototypes, numbers and records of CUPTI, cuFFT, cuDNN and cuBLASLt as declared in device/cuda, beside
// NVIDIA's headers where there are such. Checked by compiling.
#include <catch2/catch.hpp>

#if __has_include(<cupti.h>) && __has_include(<cudnn.h>) && __has_include(<cufft.h>) && __has_include(<cublasLt.h>)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cublasLt.h>
#include <cudnn.h>
#include <cufft.h>
#include <cupti.h>

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "runtime/compute/device/cuda/blas_library.hpp"
#include "runtime/compute/device/cuda/dnn.hpp"
#include "runtime/compute/device/cuda/fft.hpp"
#include "runtime/compute/device/cuda/trace.hpp"

namespace {

namespace ours = rille::device::cuda::cupti;
using namespace ours;
namespace cuda = rille::device::cuda;
using CUstream = cuda::CUstream;
using Choice = cuda::dnn::Choice;

template <class A, class B>
constexpr bool alike = std::is_pointer_v<A> == std::is_pointer_v<B> &&
                       sizeof(A) == sizeof(B) && std::is_floating_point_v<A> == std::is_floating_point_v<B>;
template <class A, class B>
struct Same : std::false_type {};
template <class R, class S, class... A, class... B>
requires(sizeof...(A) == sizeof...(B)) struct Same<R (*)(A...), S (*)(B...)>
    : std::bool_constant<(alike<A, B> && ...) && sizeof(R) == sizeof(S)> {
};

struct Ours {
#define RILLE_MEMBER(name, parameters) ours::Status(*name) parameters;
  RILLE_CUPTI(RILLE_MEMBER)
  RILLE_FFT(RILLE_MEMBER)
  RILLE_DNN(RILLE_MEMBER)
#undef RILLE_MEMBER
};
#define RILLE_SAME(name, parameters) \
  static_assert(Same<decltype(Ours::name), decltype(&::name)>::value, "not as NVIDIA's header: " #name);
RILLE_CUPTI(RILLE_SAME)
RILLE_FFT(RILLE_SAME)
RILLE_DNN(RILLE_SAME)

static_assert(Same<ours::Request, CUpti_BuffersCallbackRequestFunc>::value &&
              Same<ours::Complete, CUpti_BuffersCallbackCompleteFunc>::value);
static_assert(ours::kind_copy == CUPTI_ACTIVITY_KIND_MEMCPY && ours::kind_fill == CUPTI_ACTIVITY_KIND_MEMSET &&
              ours::kind_driver == CUPTI_ACTIVITY_KIND_DRIVER && ours::kind_runtime == CUPTI_ACTIVITY_KIND_RUNTIME &&
              ours::kind_kernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
              ours::kind_external == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION &&
              ours::external_kind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 &&
              ours::flush_forced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

#define RILLE_AT(mine, member, theirs, their_member)                        \
  static_assert(offsetof(mine, member) == offsetof(theirs, their_member) && \
                sizeof(mine::member) == sizeof(theirs::their_member));
RILLE_AT(ours::Kernel, kind, CUpti_ActivityKernel10, kind)
RILLE_AT(ours::Kernel, start, CUpti_ActivityKernel10, start)
RILLE_AT(ours::Kernel, end, CUpti_ActivityKernel10, end)
RILLE_AT(ours::Kernel, device, CUpti_ActivityKernel10, deviceId)
RILLE_AT(ours::Kernel, correlation, CUpti_ActivityKernel10, correlationId)
RILLE_AT(ours::Kernel, name, CUpti_ActivityKernel10, name)
RILLE_AT(ours::Move, how, CUpti_ActivityMemcpy6, copyKind)
RILLE_AT(ours::Move, bytes, CUpti_ActivityMemcpy6, bytes)
RILLE_AT(ours::Move, start, CUpti_ActivityMemcpy6, start)
RILLE_AT(ours::Move, end, CUpti_ActivityMemcpy6, end)
RILLE_AT(ours::Move, device, CUpti_ActivityMemcpy6, deviceId)
RILLE_AT(ours::Move, correlation, CUpti_ActivityMemcpy6, correlationId)
RILLE_AT(ours::Move, bytes, CUpti_ActivityMemset4, bytes)
RILLE_AT(ours::Move, start, CUpti_ActivityMemset4, start)
RILLE_AT(ours::Move, end, CUpti_ActivityMemset4, end)
RILLE_AT(ours::Move, device, CUpti_ActivityMemset4, deviceId)
RILLE_AT(ours::Move, correlation, CUpti_ActivityMemset4, correlationId)
RILLE_AT(ours::External, external_kind, CUpti_ActivityExternalCorrelation, externalKind)
RILLE_AT(ours::External, id, CUpti_ActivityExternalCorrelation, externalId)
RILLE_AT(ours::External, correlation, CUpti_ActivityExternalCorrelation, correlationId)

static_assert(cuda::Fft::complex_32 == CUFFT_C2C && cuda::Fft::complex_64 == CUFFT_Z2Z && CUFFT_FORWARD == -1);

using namespace cuda::dnn;
static_assert(real_f32 == CUDNN_DATA_FLOAT && real_f64 == CUDNN_DATA_DOUBLE && real_f16 == CUDNN_DATA_HALF &&
              real_bf16 == CUDNN_DATA_BFLOAT16 && math_default == CUDNN_DEFAULT_MATH &&
              math_tensor == CUDNN_TENSOR_OP_MATH && math_converts == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION &&
              math_fma == CUDNN_FMA_MATH && channels_first == CUDNN_TENSOR_NCHW && channels_last == CUDNN_TENSOR_NHWC &&
              correlation == CUDNN_CROSS_CORRELATION && deterministic == CUDNN_DETERMINISTIC);
#define RILLE_CHOICE(theirs)                         \
  static_assert(sizeof(Choice) == sizeof(theirs));   \
  RILLE_AT(Choice, algorithm, theirs, algo)          \
  RILLE_AT(Choice, status, theirs, status)           \
  RILLE_AT(Choice, bytes, theirs, memory)            \
  RILLE_AT(Choice, determinism, theirs, determinism) \
  RILLE_AT(Choice, math, theirs, mathType)
RILLE_CHOICE(cudnnConvolutionFwdAlgoPerf_t)
RILLE_CHOICE(cudnnConvolutionBwdDataAlgoPerf_t)
RILLE_CHOICE(cudnnConvolutionBwdFilterAlgoPerf_t)

// -- cuBLASLt. A layout's sizes and a pointer's attribute are passed as bytes: their widths are compared, too.
namespace lt = cuda::lt;
struct OursLt {
#define RILLE_MEMBER(name, symbol, parameters) int(*name) parameters;
  using Result = lt::Result;
  RILLE_BLAS(RILLE_MEMBER)
#undef RILLE_MEMBER
};
#define RILLE_SAME_LT(name, symbol, parameters) \
  static_assert(Same<decltype(OursLt::name), decltype(&::symbol)>::value, "not as NVIDIA's header: " #symbol);
RILLE_BLAS(RILLE_SAME_LT)
static_assert(sizeof(lt::Result) == sizeof(cublasLtMatmulHeuristicResult_t));
RILLE_AT(lt::Result, algorithm, cublasLtMatmulHeuristicResult_t, algo)
RILLE_AT(lt::Result, scratch_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize)
RILLE_AT(lt::Result, state, cublasLtMatmulHeuristicResult_t, state)
static_assert(lt::operation_t == CUBLAS_OP_T && lt::compute_32f == CUBLAS_COMPUTE_32F &&
              lt::compute_64f == CUBLAS_COMPUTE_64F && lt::compute_tf32 == CUBLAS_COMPUTE_32F_FAST_TF32 &&
              lt::real_f32 == CUDA_R_32F && lt::real_f64 == CUDA_R_64F && lt::real_f16 == CUDA_R_16F &&
              lt::real_bf16 == CUDA_R_16BF);
static_assert(lt::epilogue_none == CUBLASLT_EPILOGUE_DEFAULT && lt::epilogue_relu == CUBLASLT_EPILOGUE_RELU &&
              lt::epilogue_bias == CUBLASLT_EPILOGUE_BIAS && lt::epilogue_gelu == CUBLASLT_EPILOGUE_GELU &&
              (lt::epilogue_gelu | lt::epilogue_before) == CUBLASLT_EPILOGUE_GELU_AUX &&
              (lt::epilogue_gelu | lt::epilogue_before | lt::epilogue_bias) == CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
static_assert(lt::desc_transpose_a == CUBLASLT_MATMUL_DESC_TRANSA &&
              lt::desc_transpose_b == CUBLASLT_MATMUL_DESC_TRANSB &&
              lt::desc_epilogue == CUBLASLT_MATMUL_DESC_EPILOGUE &&
              lt::desc_bias == CUBLASLT_MATMUL_DESC_BIAS_POINTER &&
              lt::desc_before == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER &&
              lt::desc_ld_before == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD &&
              lt::layout_batches == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              lt::layout_stride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET &&
              lt::prefer_scratch == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
              lt::prefer_reduction == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK &&
              lt::reduce_in_compute_type == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE &&
              lt::prefer_align_a == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              lt::prefer_align_b == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES &&
              lt::prefer_align_c == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES &&
              lt::prefer_align_d == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

}  // namespace

TEST_CASE("CUPTI, cuFFT, cuDNN and cuBLASLt are declared as NVIDIA's headers declare them", "[cuda]") {
  SUCCEED("it compiled");
}
#else
TEST_CASE("CUPTI, cuFFT, cuDNN and cuBLASLt are declared as NVIDIA's headers declare them", "[cuda]") {
  WARN("no headers here: not compared");
}
#endif
