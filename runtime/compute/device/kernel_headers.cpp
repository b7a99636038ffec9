#include "runtime/compute/device/kernel_headers.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/compute/device/cuda_libraries.hpp"

namespace rille::device {

namespace shim {
extern const char half[];
}
namespace group_text {
extern const char words[];
}

namespace {

constexpr const char* words_header = "rille_words.h";
constexpr const char* c_library[] = {"stdint.h", "cstdint", "inttypes.h", "cinttypes", "float.h",   "cfloat",
                                     "limits.h", "climits", "math.h",     "cmath",     words_header};
constexpr const char* empty[] = {"stdio.h",
                                 "cstdio",
                                 "stddef.h",
                                 "cstddef",
                                 "stdlib.h",
                                 "cstdlib",
                                 "assert.h",
                                 "cassert",
                                 "string.h",
                                 "cstring",
                                 "stdbool.h",
                                 "cuda.h",
                                 "cuda_runtime.h",
                                 "cuda_runtime_api.h",
                                 "device_launch_parameters.h"};
// Without the toolkit these headers are empty: NVRTC has their contents built in.
constexpr const char* empty_without_toolkit[] = {"vector_types.h",   "vector_functions.h", "math_constants.h",
                                                 "math_functions.h", "device_functions.h", "sm_60_atomic_functions.h"};
constexpr const char* halves[] = {"cuda_fp16.h", "cuda_bf16.h"};

}  // namespace

std::vector<MemoryHeader> nvrtc_headers(bool toolkit) {
  std::vector<MemoryHeader> all;
  for (const char* name : c_library) all.push_back({name, group_text::words});
  for (const char* name : empty) all.push_back({name, ""});
  if (toolkit) return all;
  for (const char* name : empty_without_toolkit) all.push_back({name, ""});
  for (const char* name : halves) all.push_back({name, shim::half});
  return all;
}

std::vector<std::string> nvrtc_words(bool half) {
  std::vector<std::string> flags = {std::string("--pre-include=") + words_header};
  if (half)
    for (const char* name : halves) flags.push_back(std::string("--pre-include=") + name);
  return flags;
}

std::vector<std::string_view> nvrtc_header_texts() { return {group_text::words, shim::half}; }

std::string nvrtc_include_folder(const void* function) {
  namespace fs = std::filesystem;
  if (cuda_headers_left_out()) return "";
  std::vector<std::string> folders;
  if (const char* named = std::getenv("RILLE_CUDA_PATH"); named && *named)
    folders.push_back(std::string(named) + "/include");
  Dl_info info;
  std::error_code failed;
  if (::dladdr(function, &info) && info.dli_fname) {
    const auto real = fs::canonical(info.dli_fname, failed);
    if (!failed) folders.push_back((real.parent_path().parent_path() / "include").string());
    const auto folder = fs::path(info.dli_fname).parent_path().parent_path();
    folders.push_back((folder / "include").string());
    folders.push_back((folder.parent_path() / "cuda_runtime" / "include").string());  // NVIDIA's wheel "cuda_runtime"
  }
  folders.emplace_back("/usr/local/cuda/include");
  // A wheel may contain only a part of the headers. Return the first folder that has all parts, else the first folder.
  const auto has = [&failed](const std::string& file) { return fs::exists(file, failed); };
  std::string first;
  for (const auto& folder : folders) {
    if (!has(folder + "/cuda_fp16.h")) continue;
    if (first.empty()) first = folder;
    if (has(folder + "/crt/mma.h") && (has(folder + "/nv/target") || has(folder + "/cccl/nv/target"))) return folder;
  }
  return first;
}

}  // namespace rille::device
