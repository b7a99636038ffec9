// Rille's own kernels on a GPU that no image of this build fits: the plug-in's sources, compiled by the NVRTC of this
// machine for that architecture. What was compiled is kept on disk beside users' kernels, by the sources, the NVRTC and
// the architecture, so that it happens once; several processes may do it at the same time.
//
// Errors, kind device: there is no NVRTC here, or it does not compile for that GPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/compute/device/cuda_plugin.hpp"

namespace rille::device {

// How the kernels come to a GPU.
enum class KernelsFrom { images, kept, compiler };

// Where they would come from. device: from nowhere; names the GPU, what is missing, and how it is got. Any thread. It
// looks for NVRTC only where no image fits.
Result<KernelsFrom> kernels_from(const CudaCard& card, const cuda::DriverInfo& driver);
// The images of the build: "images for sm_80, sm_90 and PTX of sm_90, by CUDA 13.0", "no images".
std::string describe(const cuda::Kernels& kernels);

struct CudaSources {
  std::vector<cuda::KernelSource> files;
  static Result<CudaSources> of_plugin();
};

// The cubin of each source that has kernels, in their order. Blocks for about a minute of processor time, shared by
// `threads`, unless they are kept in `cache` ("": nothing is kept). Not for the loop thread.
Result<std::vector<std::string>> compile_kernels(const CudaSources& sources, int architecture, const std::string& cache,
                                                 int threads);
// One of them, for tests: its place in `files`.
Result<std::string> compile_kernels_of(const CudaSources& sources, std::size_t file, int architecture);

}  // namespace rille::device
