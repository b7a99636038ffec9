// Finds NVIDIA's libraries on this machine, in this order: the bundle, the folder named by RILLE_CUDA_PATH, the wheels
// of the Python in $PATH, the toolkit, the loader's own search. Each is loaded once, at its first use, and never
// unloaded; a process continues without missing ones. A library of a newer CUDA than the driver's comes last: it would
// load and then fail.
//
// RILLE_CUDA_WITHOUT=cudnn,cufft disables these libraries, to compare with Rille's own kernels. Compiled into both
// Rille and the CUDA plug-in, each with its own state. Threads: any.
#pragma once

#include <string>
#include <vector>

namespace rille::device {

enum class CudaPart { cublaslt, cudnn, cufft, cupti, nccl, nvrtc };
inline constexpr CudaPart cuda_parts[] = {CudaPart::cublaslt, CudaPart::cudnn, CudaPart::cufft,
                                          CudaPart::cupti,    CudaPart::nccl,  CudaPart::nvrtc};

struct CudaPartInfo {
  const char* name;      // "cuBLASLt"
  const char* word;      // "cublaslt", in RILLE_CUDA_WITHOUT
  const char* files[3];  // best first
  int cuda[3];           // CUDA version of each file; 0: any
  const char* wheel;     // folder in NVIDIA's wheels: "cublas" in nvidia/cublas/lib
  const char* package;   // the wheel, without CUDA's version: "nvidia-cublas"
  const char* lost;      // the consequence if it is missing
};
const CudaPartInfo& info_of(CudaPart part);

struct CudaPartFile {
  std::string path;
  const char* source;  // "the bundle", "RILLE_CUDA_PATH", "Python's wheels", "the toolkit"
};
// The existing files, best first, without those that only the loader would find.
std::vector<CudaPartFile> files_of(CudaPart part);

// Libraries to load before the file at `path`, which would not find them: libnvrtc-builtins, for NVRTC.
std::vector<std::string> companions_of(const std::string& path);

struct CudaPartLoaded {
  void* handle = nullptr;   // null: not found
  std::string path, why;    // why: the error of a file that does not load, or the places searched
  const char* source = "";  // also "the loader"
  int cuda = 0;             // 13: CUDA 13; 0: any
};
const CudaPartLoaded& load_part(CudaPart part);
// Advice for a missing library.
std::string how_to_get(CudaPart part);
// Sets the CUDA version that the driver supports, 12040. Call it before libraries are searched.
void set_cuda_driver(int version);
// Whether RILLE_CUDA_WITHOUT names it; read at each call.
bool left_out(CudaPart part);
// The same for the word "headers": the toolkit's headers, for NVRTC.
bool cuda_headers_left_out();

}  // namespace rille::device
