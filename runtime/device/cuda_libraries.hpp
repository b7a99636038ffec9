// Where NVIDIA's libraries are found on this machine. In this order: the bundle, the folder that RILLE_CUDA_PATH names,
// the wheels of the Python in $PATH, the toolkit, the loader's own search. Each is loaded once, when somebody asks for
// it, and never unloaded; a process goes on without the ones that are not there.
//
// RILLE_CUDA_WITHOUT=cudnn,cufft leaves these out, to compare with Rille's own kernels. Compiled into Rille and into
// the CUDA plug-in: each has its own. Threads: any.
#pragma once

#include <string>
#include <vector>

namespace rille::device {

enum class CudaPart { cublaslt, cudnn, cufft, cupti, nccl, nvrtc };
inline constexpr CudaPart cuda_parts[] = {CudaPart::cublaslt, CudaPart::cudnn, CudaPart::cufft,
                                          CudaPart::cupti,    CudaPart::nccl,  CudaPart::nvrtc};

struct CudaPartInfo {
  const char* name;                     // "cuBLASLt"
  const char* word;                     // "cublaslt", in RILLE_CUDA_WITHOUT
  const char* files[3];                 // best first
  const char* wheel;                    // its folder of NVIDIA's wheels: "cublas" in nvidia/cublas/lib
  const char* lost;                     // what is done without it
};
const CudaPartInfo& info_of(CudaPart part);

struct CudaPartFile {
  std::string path;
  const char* source;                   // "the bundle", "RILLE_CUDA_PATH", "Python's wheels", "the toolkit"
};
// The files that are there, best first; what the loader would find by itself is not among them.
std::vector<CudaPartFile> files_of(CudaPart part);

struct CudaPartLoaded {
  void* handle = nullptr;               // null: it is not here, and why
  std::string path, why;
  const char* source = "";              // also "the loader"
};
const CudaPartLoaded& load_part(CudaPart part);
// Asked each time: whether RILLE_CUDA_WITHOUT names it.
bool left_out(CudaPart part);

}  // namespace rille::device
