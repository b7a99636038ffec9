// The headers passed to NVRTC in memory: the C library's (kernels/cuda/words.h), empty files for headers that sources
// often include, and __half and __nv_bfloat16 (kernels/shim/half.h) if the CUDA toolkit's headers are missing. A bare
// libnvrtc, as in Python's wheels, then needs no files on disk; only cooperative_groups.h requires the toolkit. Private
// to kernel_nvrtc.cpp. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rille::device {

struct MemoryHeader {
  const char* name;
  const char* text;
};

// toolkit: whether the CUDA toolkit's include folder exists.
std::vector<MemoryHeader> nvrtc_headers(bool toolkit);
// NVRTC flags that include our headers before the source; `half`: also the headers of f16 and bf16 types.
std::vector<std::string> nvrtc_words(bool half);
// The texts of all headers in memory, a part of the disk cache's key.
std::vector<std::string_view> nvrtc_header_texts();

// The include folder of the CUDA toolkit whose library contains `function`. "": there is none, or RILLE_CUDA_WITHOUT
// contains "headers".
std::string nvrtc_include_folder(const void* function);

}  // namespace rille::device
