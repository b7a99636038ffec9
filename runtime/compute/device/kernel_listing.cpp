#include "runtime/compute/device/kernel_listing.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/compute/device/cuda_libraries.hpp"
#include "runtime/compute/device/kernel_files.hpp"
#include "runtime/compute/device/tool_output.hpp"
#include "runtime/core/base/places.hpp"

namespace rille::device {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t listing_bytes_max = 16 << 20;

// Beside NVRTC, which lies in lib, lib64 or targets/x86_64-linux/lib of a toolkit, or in lib of NVIDIA's wheels; else
// in $PATH. "": not found.
std::string nvdisasm() {
  for (const CudaPartFile& file : files_of(CudaPart::nvrtc)) {
    fs::path folder = fs::path(file.path).parent_path();
    for (int up = 0; up < 3 && folder.has_relative_path(); ++up) {
      folder = folder.parent_path();
      if (const fs::path program = folder / "bin" / "nvdisasm"; ::access(program.c_str(), X_OK) == 0)
        return program.string();
    }
  }
  return find_program("nvdisasm");
}

struct TemporaryFile {
  std::string path = (fs::temp_directory_path() / "rille-cubin-XXXXXX").string();
  int descriptor = ::mkstemp(path.data());
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor < 0) return;
    ::close(descriptor);
    ::unlink(path.c_str());
  }
};

}  // namespace

Result<std::string> machine_code_text(const std::string& image, const std::string& name) {
  const std::string program = nvdisasm();
  if (program.empty())
    return make_error(ErrorKind::device, fmt::format("kernel {}: nvdisasm is not on this machine", name),
                      "it comes with the CUDA toolkit, and as the Python package nvidia-cuda-nvdisasm; Rille looks "
                      "beside NVRTC and in $PATH. k:ptx() needs NVRTC alone");
  const TemporaryFile cubin, listing;
  RILLE_CHECK(write_small_file(cubin.path, image));
  Spawn disassembler;
  disassembler.argv = {"/bin/sh", "-c", "exec \"$0\" -c \"$1\" >\"$2\"", program, cubin.path, listing.path};
  const std::string said = output_of(std::move(disassembler), 2);
  RILLE_TRY(std::string text, read_small_file(listing.path, listing_bytes_max));
  if (!text.empty()) return text;
  return make_error(ErrorKind::device, fmt::format("kernel {}: {} could not read its cubin: {}", name, program, said),
                    "an nvdisasm of an older CUDA version than NVRTC's does not know new architectures");
}

}  // namespace rille::device
