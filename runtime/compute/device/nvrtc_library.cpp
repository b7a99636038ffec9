#include "runtime/compute/device/nvrtc_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <type_traits>

#include "runtime/compute/device/cuda_libraries.hpp"

namespace rille::device {

namespace {

Nvrtc load_nvrtc() {
  Nvrtc n{};
  const auto& loaded = load_part(CudaPart::nvrtc);
  void* const library = loaded.handle;
  n.why = left_out(CudaPart::nvrtc) ? "the variable RILLE_CUDA_WITHOUT excludes it" : loaded.why;
  if (!library || !n.why.empty()) return n;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (!function && n.why.empty()) n.why = fmt::format("the library has no function {}", name);
  };
  find(n.create, "nvrtcCreateProgram");
  find(n.destroy, "nvrtcDestroyProgram");
  find(n.add_name, "nvrtcAddNameExpression");
  find(n.compile, "nvrtcCompileProgram");
  find(n.log_size, "nvrtcGetProgramLogSize");
  find(n.log, "nvrtcGetProgramLog");
  find(n.cubin_size, "nvrtcGetCUBINSize");
  find(n.cubin, "nvrtcGetCUBIN");
  find(n.ptx_size, "nvrtcGetPTXSize");
  find(n.ptx, "nvrtcGetPTX");
  find(n.lowered_name, "nvrtcGetLoweredName");
  find(n.error_text, "nvrtcGetErrorString");
  find(n.version, "nvrtcVersion");
  return n;
}

}  // namespace

const Nvrtc& nvrtc() {
  static const Nvrtc n = load_nvrtc();
  return n;
}

std::string why_no_nvrtc() { return nvrtc().why; }

int nvrtc_version() {
  int major = 0, minor = 0;
  if (nvrtc().why.empty()) nvrtc().version(&major, &minor);
  return 1000 * major + 10 * minor;
}

std::string nvrtc_identity() {
  for (const auto& file : files_of(CudaPart::nvrtc)) {
    struct stat st {};
    if (::stat(file.path.c_str(), &st) == 0)
      return fmt::format("{}|{}|{}.{}", file.path, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
  }
  return fmt::format("{}", nvrtc_version());
}

std::string NvrtcProgram::log() const {
  std::size_t size = 0;
  if (n.log_size(program, &size) != 0 || size <= 1) return "";
  std::string text(size, 0);
  n.log(program, text.data());
  text.resize(size - 1);
  return text;
}

int NvrtcProgram::cubin(std::string& image) const {
  std::size_t size = 0;
  if (const int failed = n.cubin_size(program, &size)) return failed;
  image.resize(size);
  return n.cubin(program, image.data());
}

int NvrtcProgram::ptx(std::string& text) const {
  std::size_t size = 0;
  if (const int failed = n.ptx_size(program, &size)) return failed;
  text.resize(size);
  const int failed = n.ptx(program, text.data());
  text.resize(text.find_last_not_of('\0') + 1);  // the size counts the zero at the end
  return failed;
}

}  // namespace rille::device
