// libnvrtc.so.13 for tests: compiles a kernel for the CPU, through the shim, and gives as its cubin a text that names
// the kernel and the library. The stand-in driver loads that. The functions are those that
// runtime/device/kernel_nvrtc.cpp calls.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/device/kernel_build.hpp"
#include "runtime/device/kernel_token.hpp"

namespace {

using namespace rille;
using namespace rille::device;

struct Program {
  std::string text, name, lowered, log, image;
};
Program& of(void* p) { return *static_cast<Program*>(p); }
constexpr int compilation = 6;

// The __constant__ variables outside of all brackets: the shim lists the addresses of those that are named.
std::vector<KernelConstant> constants_of(const std::string& text) {
  std::vector<KernelConstant> out;
  const auto tokens = tokens_of(text);
  if (!tokens) return out;
  int depth = 0;
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    const auto& t = (*tokens)[i];
    depth += t == "{" ? 1 : t == "}" ? -1 : 0;
    if (depth || !(t == "__constant__")) continue;
    while (++i < tokens->size() && (*tokens)[i].is_word()) {}
    out.push_back({std::string((*tokens)[i - 1].text), {}});
    --i;                                             // it may be a bracket
  }
  return out;
}

// A mangled name from inside of another one, where one more name stands before it: "S1_" is "S0_" outside.
std::string from_inside(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto end = text.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", i + 1);
    out += text[i];
    if (text[i] != 'S' || end == text.npos || end == i + 1 || text[end] != '_') continue;
    unsigned long number = std::stoul(text.substr(i + 1, end - i - 1), nullptr, 36);
    std::string digits;
    for (bool more = number-- > 0; more; more = (number /= 36) > 0)
      digits.insert(digits.begin(), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[number % 36]);
    out += digits;                                   // none where "S_" is meant
    i = end - 1;
  }
  return out;
}

// A template's instance has its mangled name, as the real one gives it: that stands in the name of the runner that the
// shim makes of it, which the library's table of symbols has. "": it does not.
std::string lowered_name(const std::string& name, const std::string& library) {
  if (name.find('<') == name.npos) return name;
  std::string out;
  std::FILE* const list = ::popen(("nm '" + library + "'").c_str(), "r");
  char line[4096];
  while (list && std::fgets(line, sizeof line, list)) {
    const std::string text = line;
    const auto from = text.find("rille_runnerIXadL_Z"), end = text.rfind("EELb");
    if (from != text.npos && end != text.npos && text.find("EE3runE", end) != text.npos)
      out = from_inside(text.substr(from + 17, end - from - 17));
  }
  if (list) ::pclose(list);
  return out;
}

}  // namespace

extern "C" {
#define API __attribute__((visibility("default")))

API int nvrtcCreateProgram(void** p, const char* text, const char*, int, const char* const*, const char* const*) {
  *p = new Program{text, "", "", "", ""};
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
  options.constants = constants_of(p.text);
  const auto source = read_kernel_source(p.text);
  auto built = source ? build_for_cpu(*source, p.name, options) : Result<BuiltLibrary>(source.error());
  if (!built) {
    p.log = built.error().message + "\n" + built.error().hint;
    return compilation;
  }
  p.lowered = lowered_name(p.name, built->path);
  if (p.lowered.empty()) {
    p.log = "nm finds no " + p.name + " in " + built->path;
    return compilation;
  }
  p.image = "\x7f" "ELFstandin:" + p.lowered + "\n" + built->path;
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
  *name = of(p).lowered.c_str();
  return 0;
}
API const char* nvrtcGetErrorString(int) { return "as the stand-in says"; }
API int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}

}  // extern "C"
