// CUPTI's prototypes, numbers and records as declared in runtime/device/cuda/trace.hpp, beside NVIDIA's header where
// there is one. Checked by compiling.
#include <catch2/catch.hpp>

#if __has_include(<cupti.h>)
#include <cupti.h>

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "runtime/device/cuda/trace.hpp"

namespace {

namespace ours = rille::device::cuda::cupti;
using namespace ours;

template <class A, class B>
constexpr bool alike = std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B) &&
                       std::is_floating_point_v<A> == std::is_floating_point_v<B>;
template <class A, class B> struct Same : std::false_type {};
template <class R, class S, class... A, class... B>
  requires(sizeof...(A) == sizeof...(B))
struct Same<R (*)(A...), S (*)(B...)> : std::bool_constant<(alike<A, B> && ...) && sizeof(R) == sizeof(S)> {};

struct Ours {
#define RILLE_MEMBER(name, parameters) ours::Status(*name) parameters;
  RILLE_CUPTI(RILLE_MEMBER)
#undef RILLE_MEMBER
};
#define RILLE_SAME(name, parameters) \
  static_assert(Same<decltype(Ours::name), decltype(&::name)>::value, "not as NVIDIA's header: " #name);
RILLE_CUPTI(RILLE_SAME)

static_assert(Same<ours::Request, CUpti_BuffersCallbackRequestFunc>::value &&
              Same<ours::Complete, CUpti_BuffersCallbackCompleteFunc>::value);
static_assert(ours::kind_copy == CUPTI_ACTIVITY_KIND_MEMCPY && ours::kind_fill == CUPTI_ACTIVITY_KIND_MEMSET &&
              ours::kind_driver == CUPTI_ACTIVITY_KIND_DRIVER && ours::kind_runtime == CUPTI_ACTIVITY_KIND_RUNTIME &&
              ours::kind_kernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
              ours::kind_external == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION &&
              ours::external_kind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 &&
              ours::flush_forced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

#define RILLE_AT(mine, member, theirs, their_member)                                            \
  static_assert(offsetof(mine, member) == offsetof(theirs, their_member) &&                     \
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

}  // namespace

TEST_CASE("CUPTI is declared as NVIDIA's header declares it", "[cuda]") { SUCCEED("it compiled"); }
#else
TEST_CASE("CUPTI is declared as NVIDIA's header declares it", "[cuda]") { WARN("no cupti.h here: not compared"); }
#endif
