// The driver's prototypes and numbers as declared in device/cuda/driver.hpp, beside NVIDIA's header where there
// is one: same arity, same kinds and sizes of parameters, same constants. Checked by compiling.
#include <catch2/catch.hpp>

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <tuple>
#include <type_traits>

#include "runtime/compute/device/cuda/driver.hpp"

namespace {

namespace ours = rille::device::cuda;

// A pointer is as good as another; numbers must agree in size.
template <class A, class B>
constexpr bool alike = std::is_pointer_v<A> == std::is_pointer_v<B> &&
                       sizeof(A) == sizeof(B) && std::is_floating_point_v<A> == std::is_floating_point_v<B>;

template <class A, class B>
struct Same : std::false_type {};
template <class R, class S, class... A, class... B>
requires(sizeof...(A) == sizeof...(B)) struct Same<R (*)(A...), S (*)(B...)>
    : std::bool_constant<(alike<A, B> && ...) && sizeof(R) == sizeof(S)> {
};

#define RILLE_SAME(name, symbol, parameters) \
  static_assert(Same<decltype(ours::Driver::name), decltype(&::name)>::value, "not as NVIDIA's header: " symbol);
RILLE_CUDA_DRIVER(RILLE_SAME)

static_assert(ours::cu::out_of_memory == CUDA_ERROR_OUT_OF_MEMORY && ours::cu::no_device == CUDA_ERROR_NO_DEVICE &&
              ours::cu::stub_library == CUDA_ERROR_STUB_LIBRARY &&
              ours::cu::invalid_image == CUDA_ERROR_INVALID_IMAGE &&
              ours::cu::newer_driver == CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER &&
              ours::cu::device_unavailable == CUDA_ERROR_DEVICE_UNAVAILABLE &&
              ours::cu::invalid_device == CUDA_ERROR_INVALID_DEVICE &&
              ours::cu::no_binary_for_gpu == CUDA_ERROR_NO_BINARY_FOR_GPU &&
              ours::cu::ecc_uncorrectable == CUDA_ERROR_ECC_UNCORRECTABLE &&
              ours::cu::nvlink_uncorrectable == CUDA_ERROR_NVLINK_UNCORRECTABLE &&
              ours::cu::unsupported_ptx == CUDA_ERROR_UNSUPPORTED_PTX_VERSION &&
              ours::cu::not_found == CUDA_ERROR_NOT_FOUND && ours::cu::not_ready == CUDA_ERROR_NOT_READY);
static_assert(ours::cu::illegal_address == CUDA_ERROR_ILLEGAL_ADDRESS && ours::cu::assert == CUDA_ERROR_ASSERT &&
              ours::cu::launch_timeout == CUDA_ERROR_LAUNCH_TIMEOUT &&
              ours::cu::context_destroyed == CUDA_ERROR_CONTEXT_IS_DESTROYED &&
              ours::cu::hardware_stack == CUDA_ERROR_HARDWARE_STACK_ERROR &&
              ours::cu::illegal_instruction == CUDA_ERROR_ILLEGAL_INSTRUCTION &&
              ours::cu::misaligned_address == CUDA_ERROR_MISALIGNED_ADDRESS &&
              ours::cu::invalid_address_space == CUDA_ERROR_INVALID_ADDRESS_SPACE &&
              ours::cu::invalid_pc == CUDA_ERROR_INVALID_PC && ours::cu::launch_failed == CUDA_ERROR_LAUNCH_FAILED &&
              ours::cu::system_not_ready == CUDA_ERROR_SYSTEM_NOT_READY &&
              ours::cu::driver_mismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH &&
              ours::cu::compat_not_supported == CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE &&
              ours::cu::unknown == CUDA_ERROR_UNKNOWN);
#if CUDA_VERSION >= 13000
static_assert(ours::cu::contained == CUDA_ERROR_CONTAINED &&
              ours::cu::tensor_memory_leak == CUDA_ERROR_TENSOR_MEMORY_LEAK);
#endif
static_assert(ours::cu::stream_non_blocking == CU_STREAM_NON_BLOCKING &&
              ours::cu::event_blocking == CU_EVENT_BLOCKING_SYNC &&
              ours::cu::event_no_timing == CU_EVENT_DISABLE_TIMING &&
              ours::cu::host_portable == CU_MEMHOSTALLOC_PORTABLE &&
              ours::cu::multiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT &&
              ours::cu::l2_cache == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE &&
              ours::cu::capability_major == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              ours::cu::capability_minor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR &&
              ours::cu::shared_per_block_optin == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN &&
              ours::cu::static_shared == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES &&
              ours::cu::dynamic_shared_max == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
              ours::cu::capture_thread_local == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

}  // namespace

TEST_CASE("the driver is declared as NVIDIA's header declares it", "[cuda]") { SUCCEED("it compiled"); }
#else
TEST_CASE("the driver is declared as NVIDIA's header declares it", "[cuda]") { WARN("no cuda.h here: not compared"); }
#endif
