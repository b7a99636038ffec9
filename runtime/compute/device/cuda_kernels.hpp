// Rille's own kernels for a GPU that no image of this build fits: the plug-in's sources, compiled for that architecture
// by the machine's NVRTC. The result is cached on disk beside users' kernels, by sources, NVRTC and architecture.
// Several processes may compile at the same time.
//
// Errors, kind device: no NVRTC, or it cannot compile for that GPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/compute/device/cuda_plugin.hpp"

namespace rille::device {

// The source of a GPU's kernels: images of the build, cubins in the cache, or NVRTC.
enum class KernelsFrom { images, kept, compiler };

// Which source applies. device: none; the message names the GPU and what is missing, the hint how to get it. Any
// thread. Searches for NVRTC only if no image fits.
Result<KernelsFrom> kernels_from(const CudaCard& card, const cuda::DriverInfo& driver);
// Describes the build's images: "images for sm_80, sm_90 and PTX of sm_90, by CUDA 13.0", "no images".
std::string describe(const cuda::Kernels& kernels);

struct CudaSources {
  std::vector<cuda::KernelSource> files;
  static Result<CudaSources> of_plugin();
};

// The cubin of each source that has kernels, in their order. Blocks for about a minute of CPU time, shared by
// `threads`, unless the cubins are in `cache` ("": no caching). Not for the loop thread.
Result<std::vector<std::string>> compile_kernels(const CudaSources& sources, int architecture, const std::string& cache,
                                                 int threads);
// A single one, for tests; `file`: index in `files`.
Result<std::string> compile_kernels_of(const CudaSources& sources, std::size_t file, int architecture);

}  // namespace rille::device
