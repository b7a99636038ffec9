// CUDA's way of kernel_build.hpp: NVRTC, found at run time and declared here, makes a cubin for one architecture. It
// needs no GPU and no driver.
#include <cxxabi.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "runtime/device/cuda_libraries.hpp"
#include "runtime/device/kernel_build.hpp"
#include "runtime/device/kernel_files.hpp"
#include "runtime/device/kernel_headers.hpp"
#include "runtime/device/kernel_includes.hpp"
#include "runtime/device/kernel_nvrtc.hpp"

namespace rille::device {

namespace {

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
  std::string why;                                   // it could not be loaded
};

constexpr int nvrtc_error_option = 5, nvrtc_error_compilation = 6;
constexpr std::string_view arch_flag = "--gpu-architecture=";

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
  std::vector<std::string> flags = {std::string(arch_flag) + arch, "--std=c++17", "-lineinfo", "-default-device"};
  for (const auto& [key, value] : options.defines) flags.push_back("-D" + key + "=" + value);
  flags.insert(flags.end(), options.flags.begin(), options.flags.end());
  return flags;
}

// Their headers take NVRTC as long as the rest of a small kernel.
bool speaks_of_half(std::string_view text, const std::string& name, const std::vector<std::string>& flags) {
  const auto speaks = [](std::string_view t) {
    return t.find("half") != t.npos || t.find("bfloat16") != t.npos;
  };
  return speaks(text) || speaks(name) || std::any_of(flags.begin(), flags.end(), speaks);
}

// words: those of kernel_headers.hpp in front of the source.
Result<Cubin> compile_now(std::string_view text, const std::string& name, const KernelOptions& options,
                          std::vector<std::string> flags, bool words) {
  const Nvrtc& n = nvrtc();
  const std::string include = nvrtc_include_folder(reinterpret_cast<const void*>(n.create));
  if (!include.empty()) {
    flags.push_back("-I" + include);
    flags.push_back("-I" + include + "/cccl");
  }
  if (words) {
    const auto more = nvrtc_words(speaks_of_half(text, name, flags));
    flags.insert(flags.end(), more.begin(), more.end());
  }
  std::vector<const char*> names, texts, arguments;
  for (const auto& h : nvrtc_headers(!include.empty())) {
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
  auto flags = flags_of(options, arch);
  const std::string who = identity(), mark = line_mark(options);
  const std::string included = included_files(text, options);
  if (!included.empty() && !options.folder.empty()) flags.push_back("-I" + options.folder);
  std::vector<std::string_view> pieces = {"cuda", text, included, mark, name, who};
  for (const auto words : nvrtc_header_texts()) pieces.push_back(words);
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
  auto compiled = compile_now(text, name, options, flags, true);
  if (!compiled && compiled.error().code == "kernel_compile") {      // it may have words of its own for the same
    if (auto plain = compile_now(text, name, options, flags, false)) compiled = std::move(plain);
  }
  RILLE_TRY(out, std::move(compiled));
  if (source.makes_kernels && !declared && !out.lowered_name.starts_with("_Z")) {
    return make_error(ErrorKind::invalid, fmt::format("kernel {}: extern \"C\" and made by a macro: nothing tells what "
                                                      "its parameters are", name), "leave out extern \"C\"");
  }
  out.parameters = parameters_of(out.lowered_name, declared);
  if (!options.cache.empty()) {
    RILLE_TRY(const auto work, files.work());
    RILLE_CHECK(write_small_file(work.path() + "/cubin", out.lowered_name + "\n" + out.image));
    RILLE_CHECK(files.put(work.path() + "/cubin", file));
  }
  return out;
}

}  // namespace rille::device
