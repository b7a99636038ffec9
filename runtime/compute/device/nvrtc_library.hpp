// NVRTC, found at run time and declared here, as its documentation gives it (CUDA 12 and 13). It needs no GPU and no
// driver. Loaded once and never given back: NVRTC does not like to be unloaded. Any thread.
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
  int (*lowered_name)(Program, const char* expression, const char** lowered);
  const char* (*error_text)(int);
  int (*version)(int* major, int* minor);
  std::string why;  // it could not be loaded
};
const Nvrtc& nvrtc();

std::string why_no_nvrtc();  // "": it can be loaded here
int nvrtc_version();         // 13000; 0: there is none
// Which NVRTC it would be, without loading it where a file tells.
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

  std::string log() const;              // what the compiler has said; "": nothing
  int cubin(std::string& image) const;  // NVRTC's code; 0: well
};

}  // namespace rille::device
