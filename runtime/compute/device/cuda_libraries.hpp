// Where NVIDIA's libraries are found on this machine. In this order: the bundle, the folder that RILLE_CUDA_PATH names,
// the wheels of the Python in $PATH, the toolkit, the loader's own search. Each is loaded once, when somebody asks for
// it, and never unloaded; a process goes on without the ones that are not there. A library of a newer CUDA than the
// driver's comes after all others: it would load, and then fail.
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
  const char* name;      // "cuBLASLt"
  const char* word;      // "cublaslt", in RILLE_CUDA_WITHOUT
  const char* files[3];  // best first
  int cuda[3];           // the CUDA that each is of; 0: any
  const char* wheel;     // its folder of NVIDIA's wheels: "cublas" in nvidia/cublas/lib
  const char* package;   // the wheel, without CUDA's number: "nvidia-cublas"
  const char* lost;      // what is done without it
};
const CudaPartInfo& info_of(CudaPart part);

struct CudaPartFile {
  std::string path;
  const char* source;  // "the bundle", "RILLE_CUDA_PATH", "Python's wheels", "the toolkit"
};
// The files that are there, best first; what the loader would find by itself is not among them.
std::vector<CudaPartFile> files_of(CudaPart part);

// What has to be loaded before the file at `path`, since it would not find it: libnvrtc-builtins, beside NVRTC.
std::vector<std::string> companions_of(const std::string& path);

struct CudaPartLoaded {
  void* handle = nullptr;   // null: it is not here, and why
  std::string path, why;    // why: a file that is there and does not load, or where it was sought
  const char* source = "";  // also "the loader"
  int cuda = 0;             // 13: of CUDA 13; 0: of any
};
const CudaPartLoaded& load_part(CudaPart part);
// What to do so that it is found.
std::string how_to_get(CudaPart part);
// The CUDA that the driver supports, 12040: told by whoever starts it, before libraries are looked for.
void set_cuda_driver(int version);
// Asked each time: whether RILLE_CUDA_WITHOUT names it.
bool left_out(CudaPart part);
// The same for the word "headers": the toolkit's, which NVRTC reads.
bool cuda_headers_left_out();

}  // namespace rille::device
