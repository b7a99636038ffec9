// NVRTC, NVIDIA's compiler library, declared as in its documentation for CUDA 12 and 13. It needs no GPU and no driver.
// It is loaded at its first use and never unloaded: NVRTC does not support unloading well. Any thread.
#pragma once

#include <cstddef>
#include <string>

namespace rille::device {

struct Nvrtc {
  using Program = void*;
  int (*create)(Program*, const char* text, const char* name, int headers, const char* const* header_texts,
                const char* const* header_names);
  int (*destroy)(Program*);
  int (*add_name)(Program, const char* expression);
  int (*compile)(Program, int options, const char* const* option);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);
  int (*ptx_size)(Program, std::size_t*);
  int (*ptx)(Program, char*);
  int (*lowered_name)(Program, const char* expression, const char** lowered);
  const char* (*error_text)(int);
  int (*version)(int* major, int* minor);
  std::string why;  // why NVRTC could not be loaded
};
const Nvrtc& nvrtc();

std::string why_no_nvrtc();  // "": NVRTC can be loaded on this machine
int nvrtc_version();         // CUDA version of NVRTC, 13000; 0: no NVRTC
// Identifies the installed NVRTC for the disk cache's key: path, size and time of its file, or the version.
std::string nvrtc_identity();

struct NvrtcProgram {
  const Nvrtc& n;
  Nvrtc::Program program = nullptr;
  explicit NvrtcProgram(const Nvrtc& library) : n(library) {}
  ~NvrtcProgram() {
    if (program) n.destroy(&program);
  }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  std::string log() const;              // the compiler's output; "": none
  int cubin(std::string& image) const;  // returns NVRTC's status; 0: success
  int ptx(std::string& text) const;     // likewise
};

}  // namespace rille::device
