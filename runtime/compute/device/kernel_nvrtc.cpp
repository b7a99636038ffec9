// build_for_cuda(): NVRTC, loaded at run time, compiles a cubin. This needs neither a GPU nor a driver.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/compute/device/cuda_libraries.hpp"
#include "runtime/compute/device/kernel_build.hpp"
#include "runtime/compute/device/kernel_files.hpp"
#include "runtime/compute/device/kernel_headers.hpp"
#include "runtime/compute/device/kernel_includes.hpp"
#include "runtime/compute/device/kernel_token.hpp"
#include "runtime/compute/device/kernel_typeof.hpp"
#include "runtime/compute/device/nvrtc_library.hpp"

namespace rille::device {

namespace {

constexpr int nvrtc_error_option = 5, nvrtc_error_compilation = 6;
constexpr std::string_view arch_flag = "--gpu-architecture=";

Error nvrtc_error(const std::string& name, const char* what, int code) {
  return make_error(
      ErrorKind::device, fmt::format("kernel {}: NVRTC: {}: {}", name, what, nvrtc().error_text(code)),
      "NVRTC is the compiler for GPU kernels: run it again; if it repeats, install another version of NVRTC");
}

// Whether a pointer type points to void or to a type that the source defines. Any other type may be an alias of float.
bool points_to_own_type(std::string_view text, std::string type) {
  while (!type.empty() && (type.back() == '*' || type.back() == ' ')) type.pop_back();
  type.resize(std::min(type.size(), type.find('<')));
  type.erase(0, type.find_last_of(" :") + 1);
  const auto tokens = tokens_of(text);
  for (std::size_t i = 0; tokens && i + 1 < tokens->size(); ++i) {
    const auto& t = (*tokens)[i];
    if (t == "}" && (*tokens)[i + 1] == type) return true;  // finds: typedef struct { .. } P;
    if (!(t == "struct") && !(t == "class") && !(t == "union") && !(t == "enum")) continue;
    for (std::size_t n = i + 1; n < tokens->size() && n < i + 12; ++n) {
      const auto& word = (*tokens)[n];
      if (word == type) return true;
      if (word == "{" || word == ";" || word == ":") break;
    }
  }
  return false;
}

Result<std::vector<rille_abi::Parameter>> parameters_by_text(std::string_view text, const std::string& name,
                                                             const KernelDeclaration& declared,
                                                             const KernelOptions& options) {
  std::vector<rille_abi::Parameter> out;
  for (const auto& p : declared.parameters) {
    out.push_back(parameter_of(p.type));
    if (out.back().pointer && out.back().element == rille_abi::other && !points_to_own_type(text, p.type)) {
      return make_error(ErrorKind::invalid,
                        fmt::format("{}:{}: kernel {}: the meaning of the type {} is not known in the parameter {} {}",
                                    options.file, options.line + declared.line - 1, name, p.type, p.type, p.name),
                        "write the full type in the parameter, or leave out extern \"C\"");
    }
  }
  return out;
}

// Facts about the kernel that a compilation finds; they are cached on disk with the cubin.
struct Told {
  std::string types;  // mangled names from which read_typeof() (kernel_typeof.hpp) gets the types of the parameters
  struct Constant {
    std::string symbol, type;
  };
  std::vector<Constant> constants;  // in the order of options.constants; members are "" if unknown
};

Result<> tell(Cubin& out, const Told& told, std::string_view text, const KernelSource& source, const std::string& name,
              const KernelOptions& options) {
  const KernelDeclaration* const declared = source.find(name.substr(0, name.find('<')));
  if (const auto types = read_typeof(told.types)) {
    out.parameters = parameters_of(*types);
  } else if (const auto plain = demangled(out.lowered_name); !plain.empty()) {
    for (const auto& type : parameter_types_of(plain)) out.parameters.push_back(parameter_of(type));
  } else if (declared) {  // extern "C": the mangled name does not contain the types
    RILLE_TRY(out.parameters, parameters_by_text(text, name, *declared, options));
  } else if (source.makes_kernels) {
    return make_error(
        ErrorKind::invalid,
        fmt::format("kernel {}: a macro makes this extern \"C\" kernel, so the types of its parameters are not known",
                    name),
        "leave out extern \"C\"");
  }
  for (std::size_t i = 0; i < options.constants.size(); ++i) {
    const auto& given = options.constants[i].name;
    Cubin::Constant c{given, rille_abi::other, 0};
    if (i < told.constants.size() && !told.constants[i].symbol.empty()) c.symbol = told.constants[i].symbol;
    if (const auto type = i < told.constants.size() ? read_typeof(told.constants[i].type) : std::nullopt) {
      c.element = element_of_variable(type->type);
      c.bytes = type->sizes.empty() ? 0 : type->sizes[0];
    } else {
      c.element = constant_element(text, given);
    }
    out.constants.push_back(std::move(c));
  }
  return success();
}

std::vector<std::string> flags_of(const KernelOptions& options, const std::string& arch) {
  std::vector<std::string> flags = {std::string(arch_flag) + arch, "--std=c++17", "-lineinfo", "-default-device"};
  for (const auto& [key, value] : options.defines) flags.push_back("-D" + key + "=" + value);
  flags.insert(flags.end(), options.flags.begin(), options.flags.end());
  return flags;
}

// Whether the first flag asks for a virtual architecture, "compute_90a": the image is then PTX, a text, and not cached.
bool is_ptx(const std::string& flag) { return flag.starts_with(std::string(arch_flag) + "compute_"); }

// Whether the source, name or flags mention f16 or bf16 types, whose headers double a small kernel's compile time.
bool speaks_of_half(std::string_view text, const std::string& name, const std::vector<std::string>& flags) {
  const auto speaks = [](std::string_view t) { return t.find("half") != t.npos || t.find("bfloat16") != t.npos; };
  return speaks(text) || speaks(name) || std::any_of(flags.begin(), flags.end(), speaks);
}

// What one attempt at compiling adds to the source.
struct Way {
  bool types = true;  // the expressions of kernel_typeof.hpp, which find out types
  bool words = true;  // our headers (nvrtc_words() of kernel_headers.hpp)
};

// Which added expressions of kernel_typeof.hpp made a compilation fail.
struct Refused {
  bool types = false;
  std::string constant;  // name of a constant that the source does not define
};

Result<Cubin> compile_now(std::string_view text, const std::string& name, const KernelOptions& options,
                          std::vector<std::string> flags, Way way, Told& told, Refused& refused) {
  const Nvrtc& n = nvrtc();
  const std::string include = nvrtc_include_folder(reinterpret_cast<const void*>(n.create));
  if (!include.empty()) {
    flags.push_back("-I" + include);
    flags.push_back("-I" + include + "/cccl");
  }
  if (way.words) {
    const auto more = nvrtc_words(speaks_of_half(text, name, flags));
    flags.insert(flags.end(), more.begin(), more.end());
  }
  std::vector<const char*> names, texts, arguments;
  for (const auto& h : nvrtc_headers(!include.empty())) {
    names.push_back(h.name);
    texts.push_back(h.text);
  }
  for (const auto& f : flags) arguments.push_back(f.c_str());
  const std::string source = (way.types ? std::string(typeof_text()) : "") + line_mark(options) + std::string(text);
  std::vector<std::string> questions = {name};
  if (way.types) questions.push_back(typeof_kernel(name));
  for (const auto& c : options.constants) {
    if (!way.types) break;
    questions.push_back("&" + c.name);
    questions.push_back(typeof_variable(c.name));
  }
  NvrtcProgram p{n};
  if (int e = n.create(&p.program, source.c_str(), options.file.c_str(), int(names.size()), texts.data(), names.data()))
    return nvrtc_error(name, "nvrtcCreateProgram", e);
  for (const auto& q : questions) {
    if (int e = n.add_name(p.program, q.c_str())) return nvrtc_error(name, "nvrtcAddNameExpression", e);
  }
  const int status = n.compile(p.program, int(arguments.size()), arguments.data());
  if (status) {
    std::string log = p.log();
    if (status == nvrtc_error_option && log.find("gpu-architecture") != log.npos) {
      const int made = nvrtc_version();
      return make_error(ErrorKind::device,
                        fmt::format("kernel {}: the NVRTC of CUDA {}.{} cannot compile for {}", name, made / 1000,
                                    made % 1000 / 10, flags[0].substr(arch_flag.size())),
                        "that NVRTC is older than this GPU, or no longer supports it: " + how_to_get(CudaPart::nvrtc));
    }
    if (status != nvrtc_error_compilation && log.empty()) return nvrtc_error(name, "nvrtcCompileProgram", status);
    refused.types = refused.types || log.find("rille_types") != log.npos;
    for (const auto& c : options.constants)
      if (log.find("#pragma nv_mangled_name &" + c.name + "\n") != log.npos) refused.constant = c.name;
    return compile_error(name, options, text, std::move(log));
  }
  Cubin out;
  const char* lowered = nullptr;
  if (int e = n.lowered_name(p.program, name.c_str(), &lowered)) return nvrtc_error(name, "nvrtcGetLoweredName", e);
  out.lowered_name = lowered;
  const auto answer = [&](const std::string& question) {
    return n.lowered_name(p.program, question.c_str(), &lowered) == 0 ? std::string(lowered) : "";
  };
  told = {};
  if (way.types) told.types = answer(typeof_kernel(name));
  for (const auto& c : options.constants) {
    if (way.types) told.constants.push_back({answer("&" + c.name), answer(typeof_variable(c.name))});
  }
  if (is_ptx(flags[0])) {
    if (int e = p.ptx(out.image)) return nvrtc_error(name, "nvrtcGetPTX", e);
  } else if (int e = p.cubin(out.image)) {
    return nvrtc_error(name, "nvrtcGetCUBIN", e);
  }
  return out;
}

Error no_constant(std::string_view text, const std::string& name, const KernelOptions& options,
                  const std::string& constant) {
  const bool elsewhere = constant_element(text, constant) != rille_abi::other;
  Error e = make_error(
      ErrorKind::invalid,
      fmt::format("{}:{}: kernel {}: the source has no __constant__ {}", options.file, options.line, name, constant),
      elsewhere ? fmt::format("if the constant is in a namespace, add: using its_namespace::{};", constant) : "");
  e.code = "kernel_compile";
  return e;
}

// Tries to compile with all that Rille adds to the source, then with less, so that errors are the source's own.
Result<Cubin> compile_some_way(std::string_view text, const std::string& name, const KernelOptions& options,
                               const std::vector<std::string>& flags, bool types, Told& told) {
  Result<Cubin> first = make_error(ErrorKind::device, "nothing was tried", "this is a bug of Rille: please report it");
  Refused refused;
  for (const bool asked : {true, false}) {
    if (asked ? !types : types && !refused.types) continue;
    for (const bool words : {true, false}) {  // without our headers: the source may define their names itself
      auto compiled = compile_now(text, name, options, flags, {asked, words}, told, refused);
      if (compiled && !refused.constant.empty()) return no_constant(text, name, options, refused.constant);
      if (compiled) return compiled;
      const bool of_source = compiled.error().code == "kernel_compile";
      if (words) first = std::move(compiled);
      if (!of_source) return first;
    }
  }
  return first;
}

// The contents of the cached file: a line with the kernel's mangled name, a line per string of `told`, then the cubin.
std::string to_keep(const Cubin& built, const Told& told) {
  std::string text = built.lowered_name + "\n" + told.types + "\n";
  for (const auto& c : told.constants) text += c.symbol + "\n" + c.type + "\n";
  return text + built.image;
}

bool read_kept(const std::string& path, Cubin& out, Told& told) {
  auto text = read_small_file(path, 256u << 20);
  if (!text) return false;
  std::vector<std::string> lines;
  std::size_t at = 0;
  while (
      !std::string_view(*text).substr(at).starts_with("\x7f"
                                                      "ELF")) {
    const auto end = text->find('\n', at);
    if (end == text->npos) return false;
    lines.push_back(text->substr(at, end - at));
    at = end + 1;
  }
  if (lines.size() < 2) return false;
  out.lowered_name = lines[0];
  told.types = lines[1];
  for (std::size_t i = 2; i + 1 < lines.size(); i += 2) told.constants.push_back({lines[i], lines[i + 1]});
  out.image = text->substr(at);
  return true;
}

}  // namespace

Result<Cubin> build_for_cuda(std::string_view text, const KernelSource& source, const std::string& name,
                             const KernelOptions& options, const std::string& arch) {
  auto flags = flags_of(options, arch);
  const std::string who = nvrtc_identity(), mark = line_mark(options);
  RILLE_TRY(const std::string included, included_files(text, options));
  if (!included.empty() && !options.folder.empty()) flags.push_back("-I" + options.folder);
  std::vector<std::string_view> pieces = {"cuda", typeof_text(), text, included, mark, name, who};
  for (const auto& c : options.constants) pieces.push_back(c.name);
  for (const auto words : nvrtc_header_texts()) pieces.push_back(words);
  pieces.insert(pieces.end(), flags.begin(), flags.end());
  const std::string file = kernel_key(pieces) + ".cubin";
  const KernelFiles files(options.cache);
  Cubin out;
  Told told;
  const bool keeps = !options.cache.empty() && !is_ptx(flags[0]);
  if (keeps && files.find(file) && read_kept(files.path_of(file), out, told)) {
    out.cached = true;
    RILLE_CHECK(tell(out, told, text, source, name, options));
    return out;
  }
  if (const auto& why = nvrtc().why; !why.empty()) {
    return make_error(ErrorKind::device, fmt::format("kernel {}: NVRTC cannot be used here: {}", name, why),
                      "NVRTC compiles kernels for GPUs (dev:kernel, k:cubin); everything else works without it: " +
                          how_to_get(CudaPart::nvrtc));
  }
  // false: Rille's own kernel, whose parameter types are known
  const bool users = !source.kernels.empty() || source.makes_kernels;
  RILLE_TRY(out, compile_some_way(text, name, options, flags, users, told));
  RILLE_CHECK(tell(out, told, text, source, name, options));
  if (keeps) {
    RILLE_TRY(const auto work, files.work());
    RILLE_CHECK(write_small_file(work.path() + "/cubin", to_keep(out, told)));
    RILLE_CHECK(ask_disk(options, work.path() + "/cubin"));
    RILLE_CHECK(files.put(work.path() + "/cubin", file));
  }
  return out;
}

}  // namespace rille::device
