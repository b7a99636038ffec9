// The prototypes and numbers of NCCL as declared in device/cuda/nccl.hpp, beside NVIDIA's header where there is
// one. Checked by compiling.
#include <catch2/catch.hpp>

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>

#include <type_traits>

#include "kernels/fold.hpp"
#include "runtime/compute/device/cuda/nccl.hpp"

namespace {

namespace nccl = rille::device::cuda::nccl;
using CUstream = rille::device::cuda::CUstream;

template <class A, class B>
constexpr bool alike = std::is_pointer_v<A> == std::is_pointer_v<B> &&
                       sizeof(A) == sizeof(B) && std::is_class_v<A> == std::is_class_v<B>;
template <class A, class B>
struct Same : std::false_type {};
template <class R, class S, class... A, class... B>
requires(sizeof...(A) == sizeof...(B)) struct Same<R (*)(A...), S (*)(B...)>
    : std::bool_constant<(alike<A, B> && ...) && sizeof(R) == sizeof(S)> {
};

struct Ours {
#define RILLE_MEMBER(name, parameters) int(*name) parameters;
  RILLE_NCCL(RILLE_MEMBER)
#undef RILLE_MEMBER
};
#define RILLE_SAME(name, parameters) \
  static_assert(Same<decltype(Ours::name), decltype(&::name)>::value, "not as NVIDIA's header: " #name);
RILLE_NCCL(RILLE_SAME)

using rille::DType;
using rille::kernels::Fold;
constexpr int type_of(DType t) { return nccl::types[int(t)]; }
constexpr int reduction_of(Fold f) { return nccl::reductions[int(f)]; }
static_assert(type_of(DType::boolean) == ncclUint8 && type_of(DType::u8) == ncclUint8 &&
              type_of(DType::i8) == ncclInt8 && type_of(DType::i32) == ncclInt32 && type_of(DType::i64) == ncclInt64 &&
              type_of(DType::f16) == ncclFloat16 && type_of(DType::bf16) == ncclBfloat16 &&
              type_of(DType::f32) == ncclFloat32 && type_of(DType::f64) == ncclFloat64);
static_assert(reduction_of(Fold::sum) == ncclSum && reduction_of(Fold::mean) == ncclAvg &&
              reduction_of(Fold::max) == ncclMax && reduction_of(Fold::min) == ncclMin &&
              reduction_of(Fold::product) == ncclProd);
static_assert(nccl::success == ncclSuccess && nccl::in_progress == ncclInProgress &&
              nccl::internal_error == ncclInternalError);
static_assert(offsetof(nccl::Config, size) == offsetof(ncclConfig_t, size) &&
              offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic) &&
              offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version) &&
              offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking) &&
              offsetof(nccl::Config, later) + sizeof(int) == sizeof(nccl::Config) &&
              sizeof(nccl::Config) < sizeof(ncclConfig_t) && NCCL_CONFIG_UNDEF_INT == INT_MIN);

}  // namespace

TEST_CASE("NCCL is declared as NVIDIA's header declares it", "[cuda]") { SUCCEED("it compiled"); }
#else
TEST_CASE("NCCL is declared as NVIDIA's header declares it", "[cuda]") { WARN("no header here: not compared"); }
#endif
