// libnvrtc.so.13 for tests: compiles a kernel for the CPU, through the shim, and gives as its cubin a text that names
// the library. The stand-in driver loads that. The functions are those that runtime/device/kernel_nvrtc.cpp calls.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/device/kernel_build.hpp"

namespace {

using namespace rille;
using namespace rille::device;

struct Program {
  std::string text, name, log, image;
};
Program& of(void* p) { return *static_cast<Program*>(p); }
constexpr int compilation = 6;

}  // namespace

extern "C" {
#define API __attribute__((visibility("default")))

API int nvrtcCreateProgram(void** p, const char* text, const char*, int, const char* const*, const char* const*) {
  *p = new Program{text, "", "", ""};
  return 0;
}
API int nvrtcDestroyProgram(void** p) {
  delete static_cast<Program*>(*p);
  *p = nullptr;
  return 0;
}
API int nvrtcAddNameExpression(void* p, const char* name) {
  of(p).name = name;
  return 0;
}
API int nvrtcCompileProgram(void* handle, int n, const char* const* option) {
  Program& p = of(handle);
  if (std::getenv("RILLE_STANDIN_OLD_NVRTC")) {        // it knows no GPU of today
    p.log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
    return 5;
  }
  KernelOptions options;
  if (const char* home = std::getenv("RILLE_HOME")) options.cache = std::string(home) + "/cache/kernels";
  for (int i = 0; i < n; ++i) {
    const std::string text = option[i];
    const auto equal = text.find('=');
    if (text == "--fmad=false") options.flags = {"-ffp-contract=off", "-O1"};
    if (text.starts_with("-D")) options.defines.emplace_back(text.substr(2, equal - 2), text.substr(equal + 1));
  }
  const auto source = read_kernel_source(p.text);
  auto built = source ? build_for_cpu(*source, p.name, options) : Result<BuiltLibrary>(source.error());
  if (!built) {
    p.log = built.error().message + "\n" + built.error().hint;
    return compilation;
  }
  p.image = "\x7f" "ELFstandin:" + built->path;
  p.image.push_back('\0');
  return 0;
}
API int nvrtcGetProgramLogSize(void* p, std::size_t* bytes) {
  *bytes = of(p).log.size() + 1;
  return 0;
}
API int nvrtcGetProgramLog(void* p, char* text) {
  std::strcpy(text, of(p).log.c_str());
  return 0;
}
API int nvrtcGetCUBINSize(void* p, std::size_t* bytes) {
  *bytes = of(p).image.size();
  return 0;
}
API int nvrtcGetCUBIN(void* p, char* image) {
  std::memcpy(image, of(p).image.data(), of(p).image.size());
  return 0;
}
API int nvrtcGetLoweredName(void* p, const char*, const char** name) {
  *name = of(p).name.c_str();
  return 0;
}
API const char* nvrtcGetErrorString(int) { return "as the stand-in says"; }
API int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}

}  // extern "C"
