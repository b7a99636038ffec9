// Finds NVIDIA's libraries on this machine, in this order: the bundle, the folder named by RILLE_CUDA_PATH, the wheels
// of the Python in $PATH, the toolkit, the loader's own search. Each library is loaded at its first use and never
// unloaded; a process continues without missing libraries. A library of a newer CUDA version than the driver supports
// is tried last: it would load, but its calls would fail.
//
// RILLE_CUDA_WITHOUT=cudnn,cufft disables cuDNN and cuFFT, to compare them with Rille's own kernels. This file is
// compiled into both Rille and the CUDA plug-in, and each has its own state. Any thread.
#pragma once

#include <string>
#include <vector>

namespace rille::device {

enum class CudaPart { cublaslt, cudnn, cufft, cupti, nccl, nvrtc };
inline constexpr CudaPart cuda_parts[] = {CudaPart::cublaslt, CudaPart::cudnn, CudaPart::cufft,
                                          CudaPart::cupti,    CudaPart::nccl,  CudaPart::nvrtc};

struct CudaPartInfo {
  const char* name;      // the library's name for messages, "cuBLASLt"
  const char* word;      // the library's name in RILLE_CUDA_WITHOUT, "cublaslt"
  const char* files[3];  // file names to try, the best one first
  int cuda[3];           // CUDA version that each of `files` belongs to; 0: any version
  const char* wheel;     // folder in NVIDIA's wheels: "cublas" for nvidia/cublas/lib
  const char* package;   // name of the wheel without CUDA's version: "nvidia-cublas"
  const char* lost;      // what is lost without the library, for messages
};
const CudaPartInfo& info_of(CudaPart part);

struct CudaPartFile {
  std::string path;
  const char* source;  // where `path` was found: "the bundle", "RILLE_CUDA_PATH", "Python's wheels" or "the toolkit"
};
// The library's files on this machine, the best first, without files that only the dynamic loader would find.
std::vector<CudaPartFile> files_of(CudaPart part);

// Libraries that must be loaded before the file at `path`, which could not find them: libnvrtc-builtins for NVRTC.
std::vector<std::string> companions_of(const std::string& path);

struct CudaPartLoaded {
  void* handle = nullptr;   // handle from dlopen(); null: not found
  std::string path, why;    // why: if handle is null, the loader's error or the places searched
  const char* source = "";  // as in CudaPartFile, or "the loader"
  int cuda = 0;             // major version of CUDA that the library belongs to; 0: any
};
const CudaPartLoaded& load_part(CudaPart part);
// Advice on how to install a missing library, for the hint of an error.
std::string how_to_get(CudaPart part);
// Sets the CUDA version that the driver supports (12040 for CUDA 12.4). Call it before the first search.
void set_cuda_driver(int version);
// Whether RILLE_CUDA_WITHOUT names this library; the variable is read at each call.
bool left_out(CudaPart part);
// Whether RILLE_CUDA_WITHOUT contains "headers": NVRTC then compiles without the toolkit's include folder.
bool cuda_headers_left_out();

}  // namespace rille::device
