// Compiles Rille's own kernels for a GPU for which this build contains no image: the machine's NVRTC compiles the
// plug-in's sources for the GPU's architecture. The cubins are cached on disk beside users' kernels; the file name is a
// hash of sources, NVRTC version and architecture. Several processes may compile at the same time.
//
// Errors, kind device: there is no NVRTC, or NVRTC cannot compile for that GPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/compute/device/cuda_plugin.hpp"

namespace rille::device {

// Where a GPU's kernels come from: `images` in this build, `kept` cubins in the disk cache, or NVRTC (`compiler`).
enum class KernelsFrom { images, kept, compiler };

// Tells where the kernels for this card would come from. Error of kind device: from nowhere; the message names the GPU
// and what is missing, the hint says how to get it. Searches for NVRTC only if no image fits. Any thread.
Result<KernelsFrom> kernels_from(const CudaCard& card, const cuda::DriverInfo& driver);
// Describes the build's kernel images: "images for sm_80, sm_90 and PTX of sm_90, by CUDA 13.0", or "no images".
std::string describe(const cuda::Kernels& kernels);

struct CudaSources {
  std::vector<cuda::KernelSource> files;
  static Result<CudaSources> of_plugin();
};

// Returns one cubin for each source file that has kernels, in the order of `files`. Unless the cubins are in the
// directory `cache` ("": no caching), takes about a minute of CPU time, divided among `threads`. Not for the loop
// thread.
Result<std::vector<std::string>> compile_kernels(const CudaSources& sources, int architecture, const std::string& cache,
                                                 int threads);
// For tests: compiles one source file only; `file` is its index in `files`.
Result<std::string> compile_kernels_of(const CudaSources& sources, std::size_t file, int architecture);

}  // namespace rille::device
