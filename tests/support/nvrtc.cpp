// libnvrtc.so.13 for tests: compiles a kernel for the CPU, through the shim; its cubin is a text that names the kernel
// and the library, which the stand-in driver loads. Rille's own sources are not compiled: their cubin stands for the
// shim's kernels. The functions are those of runtime/compute/device/nvrtc_library.hpp.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/device/kernel_build.hpp"
#include "runtime/compute/device/kernel_files.hpp"
#include "runtime/compute/device/kernel_token.hpp"
#include "runtime/compute/device/kernel_typeof.hpp"

namespace {

using namespace rille;
using namespace rille::device;

struct Program {
  std::string text, lowered, log, image;
  bool own = false;                // a file of kernels/cuda
  std::vector<std::string> names;  // the kernel's, then the queries of kernel_typeof.hpp
  std::vector<std::string> lowered_names;
};
Program& of(void* p) { return *static_cast<Program*>(p); }
constexpr int compilation = 6;

// The __constant__ variables at top level, each of `__constant__ float a, b[2];`: the shim lists the addresses of the
// named ones.
std::vector<KernelConstant> constants_of(const std::string& text) {
  std::vector<KernelConstant> out;
  const auto tokens = tokens_of(text);
  if (!tokens) return out;
  int depth = 0;
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    const auto& t = (*tokens)[i];
    depth += t == "{" ? 1 : t == "}" ? -1 : 0;
    if (depth || !(t == "__constant__")) continue;
    for (int inside = 0; ++i < tokens->size();) {
      const auto& w = (*tokens)[i];
      const bool last = w == ";";
      if (inside == 0 && (last || w == "," || w == "[" || w == "=") && (*tokens)[i - 1].is_word())
        out.push_back({std::string((*tokens)[i - 1].text), {}});
      if (w == "[" || w == "{" || w == "(") ++inside;
      if (w == "]" || w == "}" || w == ")") --inside;
      if (last && inside == 0) break;
    }
  }
  return out;
}

// A mangled name from inside another one, which has one more name before it: "S1_" is "S0_" outside.
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
    out += digits;  // empty if "S_" is meant
    i = end - 1;
  }
  return out;
}

// An instance of a template has its mangled name, as with the real NVRTC: found in the name of the shim's runner in the
// library's symbol table. "": not found.
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

std::string type_code(const rille_abi::Parameter& p) {
  static constexpr const char* codes[] = {
      "3Own", "b", "c", "h", "s", "t", "i", "j", "x", "y", "6__half", "13__nv_bfloat16", "f", "d", "v"};
  const std::string vector = describe({0, p.element, p.lanes, 0, p.size});
  const std::string one = p.lanes > 1 ? std::to_string(vector.size()) + vector : codes[p.element];
  return std::string(p.pointer ? "P" : "") + (p.pointer && p.constant ? "K" : "") + one;
}

// The answers to kernel_typeof.hpp's queries, from the shim's data. A constant is an array of its numbers.
std::vector<std::string> answers(const std::vector<std::string>& questions, const std::string& library) {
  std::vector<std::string> out;
  void* const loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto* k = loaded ? static_cast<const rille_abi::Kernel*>(::dlsym(loaded, "rille_kernel")) : nullptr;
  const std::string front = "_Z" + std::to_string(typeof_name.size()) + std::string(typeof_name) + "I";
  const auto size = [](std::size_t n) { return "Ly" + std::to_string(n) + "E"; };
  for (const auto& q : questions) {
    std::string answer, sizes;
    if (k && q == typeof_kernel(questions[0])) {
      answer = front + "PFv";
      for (unsigned i = 0; i < k->parameters; ++i) {
        answer += type_code(k->parameter[i]);
        sizes += size(k->parameter[i].pointer ? 8 : k->parameter[i].size);
      }
      answer += std::string(k->parameters ? "" : "v") + "E11rille_sizesIJ" + sizes + "EEEvv";
    }
    for (unsigned i = 0; k && i < k->symbols; ++i) {
      const auto& s = k->symbol[i];
      if (q == std::string("&") + s.name) answer = s.name;
      if (q != typeof_variable(s.name)) continue;
      answer = front + "A" + std::to_string(s.bytes) + "_" + type_code({0, s.element, 1, 0, 0}) + "11rille_sizesIJ" +
               size(s.bytes) + "EEEvv";
    }
    out.push_back(answer);
  }
  if (loaded) ::dlclose(loaded);
  return out;
}

}  // namespace

extern "C" {
#define API __attribute__((visibility("default")))

API int nvrtcCreateProgram(void** p, const char* text, const char* name, int, const char* const*, const char* const*) {
  std::string_view source = text;
  if (source.starts_with(typeof_text())) source.remove_prefix(typeof_text().size());
  *p = new Program{std::string(source), "", "", "", name && std::strncmp(name, "kernels/cuda/", 13) == 0, {}, {}};
  return 0;
}
API int nvrtcDestroyProgram(void** p) {
  delete static_cast<Program*>(*p);
  *p = nullptr;
  return 0;
}
API int nvrtcAddNameExpression(void* p, const char* name) {
  of(p).names.emplace_back(name);
  return 0;
}
API int nvrtcCompileProgram(void* handle, int n, const char* const* option) {
  Program& p = of(handle);
  if (std::getenv("RILLE_STANDIN_OLD_NVRTC")) {  // it supports no current GPU
    p.log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
    return 5;
  }
  if (p.own) {
    p.image = std::string(
        "\x7f"
        "ELF kernels of the build",
        25);
    return 0;
  }
  KernelOptions options;
  static const WorkDirectory folder = *WorkDirectory::create(std::filesystem::temp_directory_path().string());
  const char* home = std::getenv("RILLE_HOME");
  options.cache = home ? std::string(home) + "/cache/kernels" : folder.path();  // the image names the file
  for (int i = 0; i < n; ++i) {
    const std::string text = option[i];
    const auto equal = text.find('=');
    if (text == "--fmad=false") options.flags = {"-ffp-contract=off", "-O1"};
    if (text.starts_with("-D")) options.defines.emplace_back(text.substr(2, equal - 2), text.substr(equal + 1));
  }
  options.constants = constants_of(p.text);
  const auto source = read_kernel_source(p.text);
  auto built = source ? build_for_cpu(*source, p.names[0], options) : Result<BuiltLibrary>(source.error());
  if (!built) {
    p.log = built.error().message + "\n" + built.error().hint;
    return compilation;
  }
  p.lowered = lowered_name(p.names[0], built->path);
  if (p.lowered.empty()) {
    p.log = "nm finds no " + p.names[0] + " in " + built->path;
    return compilation;
  }
  p.lowered_names = answers(p.names, built->path);
  p.lowered_names[0] = p.lowered;
  p.image =
      "\x7f"
      "ELFstandin:" +
      p.lowered + "\n" + built->path;
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
API int nvrtcGetPTXSize(void* p, std::size_t* bytes) {
  *bytes = of(p).lowered.size() + 11;
  return 0;
}
API int nvrtcGetPTX(void* p, char* text) {
  std::strcpy(text, (".entry " + of(p).lowered + "()\n").c_str());
  return 0;
}
API int nvrtcGetLoweredName(void* p, const char* asked, const char** name) {
  for (std::size_t i = 0; i < of(p).names.size(); ++i) {
    if (of(p).names[i] != asked || of(p).lowered_names[i].empty()) continue;
    *name = of(p).lowered_names[i].c_str();
    return 0;
  }
  return compilation;
}
API const char* nvrtcGetErrorString(int) { return "as the stand-in says"; }
API int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}

}  // extern "C"
