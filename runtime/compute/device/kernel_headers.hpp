// The headers passed to NVRTC in memory: the C library's (kernels/cuda/words.h), empty ones that sources often include,
// and, if the toolkit's own are missing, __half and __nv_bfloat16 (kernels/shim/half.h). A bare libnvrtc, as in
// Python's wheels, then needs no files on disk; only cooperative_groups.h requires the toolkit. Private to
// kernel_nvrtc.cpp. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rille::device {

struct MemoryHeader {
  const char* name;
  const char* text;
};

// toolkit: its include folder exists.
std::vector<MemoryHeader> nvrtc_headers(bool toolkit);
// Flags that include our headers before the source; `half`: also those of half types.
std::vector<std::string> nvrtc_words(bool half);
// The texts of all headers, for the cache key.
std::vector<std::string_view> nvrtc_header_texts();

// The include folder of the toolkit whose library contains `function`. "": none, or RILLE_CUDA_WITHOUT has the word
// "headers".
std::string nvrtc_include_folder(const void* function);

}  // namespace rille::device
