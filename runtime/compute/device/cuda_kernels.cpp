#include "runtime/compute/device/cuda_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/compute/device/cuda_libraries.hpp"
#include "runtime/compute/device/kernel_files.hpp"
#include "runtime/compute/device/kernel_headers.hpp"
#include "runtime/compute/device/nvrtc_library.hpp"

namespace rille::device {

namespace {

constexpr std::size_t image_bytes_max = 256u << 20;
constexpr std::string_view elf =
    "\x7f"
    "ELF";

std::string version_text(int cuda) { return fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10); }

std::vector<std::string> flags_for(const cuda::KernelSource& file, int architecture) {
  std::vector<std::string> flags = {fmt::format("--gpu-architecture=sm_{}", architecture), "--std=c++17",
                                    "-default-device", "-diag-suppress=177,186"};
  if (!file.joined) flags.push_back("-fmad=false");
  return flags;
}

// The cubin's file name is a hash of everything it depends on: all sources (headers are shared), flags, name, compiler.
std::string name_on_disk(const CudaSources& sources, const cuda::KernelSource& file, int architecture,
                         const std::string& compiler) {
  std::vector<std::string_view> pieces = {"own", file.name, compiler};
  for (const auto& s : sources.files) pieces.push_back({s.text, s.bytes});
  for (const auto text : nvrtc_header_texts()) pieces.push_back(text);
  const auto flags = flags_for(file, architecture);
  pieces.insert(pieces.end(), flags.begin(), flags.end());
  return kernel_key(pieces) + ".cubin";
}

Error refused(const char* file, const char* doing, int code, const std::string& log) {
  Error e = make_error(
      ErrorKind::device,
      fmt::format("{}: NVRTC of CUDA {} ({}) does not compile it: {}: {}", file, version_text(nvrtc_version()),
                  load_part(CudaPart::nvrtc).path, doing, nvrtc().error_text(code)),
      fmt::format("another NVRTC may: {}; or build Rille with images for this GPU", how_to_get(CudaPart::nvrtc)));
  if (!log.empty()) e.hint += ". It says: " + log.substr(0, 1000);
  return e;
}

Result<std::string> compile(const CudaSources& sources, const cuda::KernelSource& file, int architecture) {
  const Nvrtc& n = nvrtc();
  if (!n.why.empty())
    return make_error(ErrorKind::device, fmt::format("{}: no NVRTC here: {}", file.name, n.why),
                      how_to_get(CudaPart::nvrtc));
  auto flags = flags_for(file, architecture);
  const std::string include = nvrtc_include_folder(reinterpret_cast<const void*>(n.create));
  if (!include.empty()) {
    flags.push_back("-I" + include);
    flags.push_back("-I" + include + "/cccl");
  }
  for (auto& word : nvrtc_words(true)) flags.push_back(std::move(word));
  std::vector<const char*> names, texts, arguments;
  for (const auto& h : nvrtc_headers(!include.empty())) names.push_back(h.name), texts.push_back(h.text);
  for (const auto& s : sources.files)
    if (!s.kernels) names.push_back(s.name), texts.push_back(s.text);
  for (const auto& f : flags) arguments.push_back(f.c_str());
  NvrtcProgram program(n);
  if (const int failed =
          n.create(&program.program, file.text, file.name, int(names.size()), texts.data(), names.data()))
    return refused(file.name, "nvrtcCreateProgram", failed, "");
  if (const int failed = n.compile(program.program, int(arguments.size()), arguments.data()))
    return refused(file.name, "nvrtcCompileProgram", failed, program.log());
  std::string image;
  if (const int failed = program.cubin(image)) return refused(file.name, "nvrtcGetCUBIN", failed, "");
  return image;
}

// Reads the cubin from the cache or compiles it. Another process may have written the same file: its content is
// equivalent. A file without the ELF magic is compiled again.
Result<std::string> kept_or_compiled(const CudaSources& sources, const cuda::KernelSource& file, int architecture,
                                     const KernelFiles& files, const std::string& compiler) {
  const std::string name = name_on_disk(sources, file, architecture, compiler);
  if (files.find(name)) {
    auto image = read_small_file(files.path_of(name), image_bytes_max);
    if (image && image->starts_with(elf)) return image;
  }
  RILLE_TRY(std::string image, compile(sources, file, architecture));
  if (files.directory().empty()) return image;
  RILLE_TRY(const auto work, files.work());
  RILLE_CHECK(write_small_file(work.path() + "/cubin", image));
  RILLE_CHECK(files.put(work.path() + "/cubin", name));
  return image;
}

std::string missing_on(const CudaCard& card, const cuda::Kernels& built) {
  return fmt::format("this build has no kernels for {} (sm_{}): {}", card.info.name, card.info.architecture,
                     describe(built));
}

}  // namespace

std::string describe(const cuda::Kernels& kernels) {
  std::string text;
  for (const auto a : kernels.architectures)
    if (a) text += fmt::format("{}sm_{}", text.empty() ? "" : ", ", a);
  if (text.empty()) return "no images";
  if (kernels.ptx) text += fmt::format(" and PTX of sm_{}", kernels.ptx);
  return fmt::format("images for {}, by CUDA {}", text, version_text(kernels.cuda));
}

Result<CudaSources> CudaSources::of_plugin() {
  RILLE_TRY(const auto* table, cuda_plugin());
  CudaSources out;
  cuda::KernelSource file{};
  for (int i = 0; table->source(i, &file); ++i) out.files.push_back(file);
  return out;
}

Result<KernelsFrom> kernels_from(const CudaCard& card, const cuda::DriverInfo& driver) {
  RILLE_TRY(const auto built, cuda_kernels());
  const int architecture = card.info.architecture;
  const bool known = built.cuda / 1000 <= driver.version / 1000;
  if (built.cuda && known && cuda::has_image(built, architecture)) return KernelsFrom::images;
  const std::string command = fmt::format("./bootstrap cuda {}", architecture);
  if (built.sources == 0)
    return make_error(ErrorKind::device, missing_on(card, built),
                      fmt::format("`{}` builds Rille with them; RILLE_DEVICE=cpu computes on the processor", command));
  RILLE_TRY(const auto sources, CudaSources::of_plugin());
  const KernelFiles files(KernelFiles::default_directory());
  const std::string compiler = nvrtc_identity();
  const auto is_kept = [&](const cuda::KernelSource& s) {
    return !s.kernels || files.find(name_on_disk(sources, s, architecture, compiler));
  };
  if (std::all_of(sources.files.begin(), sources.files.end(), is_kept)) return KernelsFrom::kept;
  if (const std::string why = why_no_nvrtc(); !why.empty())
    return make_error(ErrorKind::device,
                      fmt::format("{}, and no NVRTC is here that compiles them: {}", missing_on(card, built), why),
                      fmt::format("`{}` builds Rille with them; or: {}; RILLE_DEVICE=cpu computes on the processor",
                                  command, how_to_get(CudaPart::nvrtc)));
  return KernelsFrom::compiler;
}

Result<std::vector<std::string>> compile_kernels(const CudaSources& sources, int architecture, const std::string& cache,
                                                 int threads) {
  std::vector<const cuda::KernelSource*> wanted;
  for (const auto& s : sources.files)
    if (s.kernels) wanted.push_back(&s);
  // Start the largest source first: started last, it would run alone while the other threads are idle.
  std::vector<std::size_t> order(wanted.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(wanted[a]->joined, wanted[b]->bytes) < std::pair(wanted[b]->joined, wanted[a]->bytes);
  });
  const KernelFiles files(cache);
  const std::string compiler = nvrtc_identity();
  std::vector<std::string> images(wanted.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::optional<Error> failed;
  const auto work = [&] {
    for (std::size_t i = next++; i < order.size(); i = next++) {
      auto image = kept_or_compiled(sources, *wanted[order[i]], architecture, files, compiler);
      const std::lock_guard lock(mutex);
      if (image) images[order[i]] = std::move(*image);
      else if (!failed) failed = std::move(image).error();
      if (failed) return;
    }
  };
  std::vector<std::thread> helpers;
  const auto count = std::min(std::size_t(std::max(threads, 1)), order.size());
  for (std::size_t i = 1; i < count; ++i) helpers.emplace_back(work);
  work();
  for (auto& t : helpers) t.join();
  if (failed) return std::move(*failed);
  return images;
}

Result<std::string> compile_kernels_of(const CudaSources& sources, std::size_t file, int architecture) {
  return compile(sources, sources.files.at(file), architecture);
}

}  // namespace rille::device
