// CUDA's way of kernel_build.hpp: NVRTC, found at run time and declared here, makes a cubin for one architecture. It
// needs no GPU and no driver.
#include <cxxabi.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>

#include "runtime/device/cuda_libraries.hpp"
#include "runtime/device/kernel_build.hpp"
#include "runtime/device/kernel_files.hpp"
#include "runtime/device/kernel_nvrtc.hpp"

namespace rille::device {

namespace {

namespace fs = std::filesystem;

// NVRTC's functions, as its documentation gives them (CUDA 12 and 13).
using Program = void*;
struct Nvrtc {
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
  std::string include;                               // of its toolkit; "" when there is none
  std::string why;                                   // it could not be loaded
};

constexpr int nvrtc_error_option = 5, nvrtc_error_compilation = 6;
constexpr std::string_view arch_flag = "--gpu-architecture=";

std::string include_of(void* function) {
  std::vector<std::string> folders;
  if (const char* named = std::getenv("RILLE_CUDA_PATH"); named && *named)
    folders.push_back(std::string(named) + "/include");
  Dl_info info;
  std::error_code failed;
  if (::dladdr(function, &info) && info.dli_fname) {
    const auto real = fs::canonical(info.dli_fname, failed);
    if (!failed) folders.push_back((real.parent_path().parent_path() / "include").string());
    folders.push_back((fs::path(info.dli_fname).parent_path().parent_path() / "include").string());
  }
  folders.emplace_back("/usr/local/cuda/include");
  for (const auto& folder : folders) if (fs::exists(folder + "/cuda_fp16.h", failed)) return folder;
  return "";
}

Nvrtc load_nvrtc() {
  Nvrtc n{};
  const auto& loaded = load_part(CudaPart::nvrtc);
  void* const library = loaded.handle;
  n.why = left_out(CudaPart::nvrtc) ? "RILLE_CUDA_WITHOUT leaves it out" : loaded.why;
  if (!library || !n.why.empty()) return n;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (!function && n.why.empty()) n.why = fmt::format("it has no {}", name);
  };
  find(n.create, "nvrtcCreateProgram");
  find(n.destroy, "nvrtcDestroyProgram");
  find(n.add_name, "nvrtcAddNameExpression");
  find(n.compile, "nvrtcCompileProgram");
  find(n.log_size, "nvrtcGetProgramLogSize");
  find(n.log, "nvrtcGetProgramLog");
  find(n.cubin_size, "nvrtcGetCUBINSize");
  find(n.cubin, "nvrtcGetCUBIN");
  find(n.lowered_name, "nvrtcGetLoweredName");
  find(n.error_text, "nvrtcGetErrorString");
  find(n.version, "nvrtcVersion");
  if (n.why.empty()) n.include = include_of(reinterpret_cast<void*>(n.create));
  return n;
}

// Loaded once and never given back: NVRTC does not like to be unloaded.
const Nvrtc& nvrtc() {
  static const Nvrtc n = load_nvrtc();
  return n;
}

// Which NVRTC it would be, without loading it where a file tells.
std::string identity() {
  for (const auto& file : files_of(CudaPart::nvrtc)) {
    struct stat st {};
    if (::stat(file.path.c_str(), &st) == 0)
      return fmt::format("{}|{}|{}.{}", file.path, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
  }
  return fmt::format("{}", nvrtc_version());
}

// Headers of C that kernels include and NVRTC does not have.
struct Header { const char* name; const char* text; };
constexpr const char* integers =
    "#pragma once\ntypedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t;\n"
    "typedef unsigned short uint16_t; typedef int int32_t; typedef unsigned int uint32_t;\n"
    "typedef long long int64_t; typedef unsigned long long uint64_t; typedef long long intptr_t;\n"
    "typedef unsigned long long uintptr_t;\n";
constexpr const char* limits =
    "#pragma once\n#define FLT_MAX 3.402823466e+38f\n#define FLT_MIN 1.175494351e-38f\n"
    "#define FLT_EPSILON 1.1920929e-7f\n#define DBL_MAX 1.7976931348623157e+308\n"
    "#define DBL_MIN 2.2250738585072014e-308\n"
    "#define DBL_EPSILON 2.2204460492503131e-16\n#define INT_MAX 2147483647\n#define INT_MIN (-INT_MAX - 1)\n"
    "#define UINT_MAX 4294967295u\n#define LLONG_MAX 9223372036854775807ll\n#define LLONG_MIN (-LLONG_MAX - 1)\n"
    "#define ULLONG_MAX 18446744073709551615ull\n#define CHAR_BIT 8\n";
constexpr const char* mathematics =
    "#pragma once\n#ifndef M_PI\n#define M_PI 3.14159265358979323846\n#define M_E 2.7182818284590452354\n"
    "#define M_SQRT2 1.41421356237309504880\n#endif\n#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n"
    "#define NAN __int_as_float(0x7fffffff)\n#endif\n";
constexpr Header headers[] = {
    {"stdint.h", integers}, {"cstdint", integers}, {"float.h", limits}, {"cfloat", limits}, {"limits.h", limits},
    {"climits", limits}, {"math.h", mathematics}, {"cmath", mathematics}, {"stdio.h", ""}, {"cstdio", ""},
    {"stddef.h", ""}, {"cstddef", ""}, {"stdlib.h", ""}, {"cstdlib", ""}, {"assert.h", ""}, {"cassert", ""},
    {"cuda_runtime.h", ""}, {"device_launch_parameters.h", ""}};

struct Owned {
  const Nvrtc& n;
  Program program = nullptr;
  ~Owned() { if (program) n.destroy(&program); }
};

Error nvrtc_error(const std::string& name, const char* what, int code) {
  return make_error(ErrorKind::device, fmt::format("kernel {}: NVRTC: {}: {}", name, what, nvrtc().error_text(code)));
}

std::vector<rille_abi::Parameter> parameters_of(const std::string& lowered, const KernelDeclaration* declared) {
  std::vector<rille_abi::Parameter> out;
  int status = 0;
  const bool mangled = lowered.starts_with("_Z");    // else "f" would be the type float
  char* text = mangled ? abi::__cxa_demangle(lowered.c_str(), nullptr, nullptr, &status) : nullptr;
  if (text) {
    for (const auto& type : parameter_types_of(text)) out.push_back(parameter_of(type));
    std::free(text);
  } else if (declared) {                             // extern "C": the name tells nothing
    for (const auto& p : declared->parameters) out.push_back(parameter_of(p.type));
  }
  return out;
}

std::vector<std::string> flags_of(const KernelOptions& options, const std::string& arch) {
  std::vector<std::string> flags = {std::string(arch_flag) + arch, "--std=c++17", "-lineinfo"};
  for (const auto& [key, value] : options.defines) flags.push_back("-D" + key + "=" + value);
  flags.insert(flags.end(), options.flags.begin(), options.flags.end());
  return flags;
}

Result<Cubin> compile_now(std::string_view text, const std::string& name, const KernelOptions& options,
                          std::vector<std::string> flags) {
  const Nvrtc& n = nvrtc();
  if (!n.include.empty()) {
    flags.push_back("-I" + n.include);
    flags.push_back("-I" + n.include + "/cccl");
  }
  std::vector<const char*> names, texts, arguments;
  for (const auto& h : headers) {
    names.push_back(h.name);
    texts.push_back(h.text);
  }
  for (const auto& f : flags) arguments.push_back(f.c_str());
  const std::string source = line_mark(options) + std::string(text);
  Owned p{n};
  if (int e = n.create(&p.program, source.c_str(), options.file.c_str(), int(names.size()), texts.data(), names.data()))
    return nvrtc_error(name, "nvrtcCreateProgram", e);
  if (int e = n.add_name(p.program, name.c_str())) return nvrtc_error(name, "nvrtcAddNameExpression", e);
  const int status = n.compile(p.program, int(arguments.size()), arguments.data());
  if (status) {
    std::size_t size = 0;
    std::string log;
    if (n.log_size(p.program, &size) == 0 && size > 1) {
      log.resize(size);
      n.log(p.program, log.data());
      log.resize(size - 1);
    }
    if (status == nvrtc_error_option && log.find("gpu-architecture") != log.npos) {
      const int made = nvrtc_version();
      return make_error(ErrorKind::device,
                        fmt::format("kernel {}: NVRTC of CUDA {}.{} compiles nothing for {}", name, made / 1000,
                                    made % 1000 / 10, flags[0].substr(arch_flag.size())),
                        "it is older than this GPU, or no longer knows it: " + how_to_get(CudaPart::nvrtc));
    }
    if (status != nvrtc_error_compilation && log.empty()) return nvrtc_error(name, "nvrtcCompileProgram", status);
    return compile_error(name, options, text, std::move(log));
  }
  Cubin out;
  const char* lowered = nullptr;
  if (int e = n.lowered_name(p.program, name.c_str(), &lowered)) return nvrtc_error(name, "nvrtcGetLoweredName", e);
  out.lowered_name = lowered;
  std::size_t size = 0;
  if (int e = n.cubin_size(p.program, &size)) return nvrtc_error(name, "nvrtcGetCUBINSize", e);
  out.image.resize(size);
  if (int e = n.cubin(p.program, out.image.data())) return nvrtc_error(name, "nvrtcGetCUBIN", e);
  return out;
}

// On disk: one line with the lowered name, then the cubin, which is an ELF file.
bool read_kept(const std::string& path, Cubin& out) {
  auto text = read_small_file(path, 256u << 20);
  if (!text) return false;
  const auto end = text->find('\n');
  if (end == text->npos || text->compare(end + 1, 4, "\x7f" "ELF") != 0) return false;
  out.lowered_name = text->substr(0, end);
  out.image = text->substr(end + 1);
  return true;
}

}  // namespace

std::string why_no_nvrtc() { return nvrtc().why; }

int nvrtc_version() {
  int major = 0, minor = 0;
  if (nvrtc().why.empty()) nvrtc().version(&major, &minor);
  return 1000 * major + 10 * minor;
}

Result<Cubin> build_for_cuda(std::string_view text, const KernelSource& source, const std::string& name,
                             const KernelOptions& options, const std::string& arch) {
  const auto flags = flags_of(options, arch);
  const std::string who = identity(), mark = line_mark(options);
  std::vector<std::string_view> pieces = {"cuda", text, mark, name, who};
  for (const auto& h : headers) pieces.push_back(h.text);
  pieces.insert(pieces.end(), flags.begin(), flags.end());
  const std::string file = kernel_key(pieces) + ".cubin";
  const KernelFiles files(options.cache);
  const KernelDeclaration* declared = source.find(name.substr(0, name.find('<')));
  Cubin out;
  if (files.find(file) && read_kept(files.path_of(file), out)) {
    out.cached = true;
    out.parameters = parameters_of(out.lowered_name, declared);
    return out;
  }
  if (const auto& why = nvrtc().why; !why.empty()) {
    return make_error(ErrorKind::device, fmt::format("kernel {}: no NVRTC here: {}", name, why),
                      "it compiles kernels for GPUs (dev:kernel, k:cubin); all else goes on without it: " +
                          how_to_get(CudaPart::nvrtc));
  }
  RILLE_TRY(out, compile_now(text, name, options, flags));
  out.parameters = parameters_of(out.lowered_name, declared);
  if (!options.cache.empty()) {
    RILLE_TRY(const auto work, files.work());
    RILLE_CHECK(write_small_file(work.path() + "/cubin", out.lowered_name + "\n" + out.image));
    RILLE_CHECK(files.put(work.path() + "/cubin", file));
  }
  return out;
}

}  // namespace rille::device
