// The headers that NVRTC is handed in memory: what the C library has (kernels/cuda/words.h), empty ones that sources
// include from habit, and, where the toolkit's own cannot be found, __half and __nv_bfloat16 (kernels/shim/half.h). A
// bare libnvrtc, as of Python's wheels, needs no file on the disk then; cooperative_groups.h is the toolkit's alone.
// Private to kernel_nvrtc.cpp. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rille::device {

struct MemoryHeader {
  const char* name;
  const char* text;
};

// toolkit: its include folder is there.
std::vector<MemoryHeader> nvrtc_headers(bool toolkit);
// What stands in front of a source; with `half` when something in it speaks of half types.
std::vector<std::string> nvrtc_words(bool half);
// Everything that may be handed over, for the cache's key.
std::vector<std::string_view> nvrtc_header_texts();

// The include folder of the toolkit of the library that `function` is of. "": there is none, or RILLE_CUDA_WITHOUT has
// the word "headers".
std::string nvrtc_include_folder(const void* function);

}  // namespace rille::device
